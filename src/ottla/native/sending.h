/* An answer on its way to a socket that does not block, and what is to be known where not all of it leaves. */

#ifndef OTTLA_SENDING_H
#define OTTLA_SENDING_H

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* Python ignores the signal */
#endif

/* Sends it, or nothing of it where the socket is `blocked` already. What did not leave is put on the list, as (whose,
   rest), or as (whose, None) for a fault, and the socket is blocked then. -1 where there is no memory for that. */
static inline int send_or_note(int fd, const uint8_t *data, size_t size, PyObject *whose, char *blocked, PyObject *left)
{
    ssize_t sent = *blocked ? 0 : send(fd, data, size, MSG_NOSIGNAL);
    if (sent == (ssize_t)size)
        return 0;
    PyObject *rest = Py_None;
    *blocked = 1;
    if (sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        if (sent < 0)
            sent = 0;
        rest = PyBytes_FromStringAndSize((const char *)data + sent, (Py_ssize_t)(size - (size_t)sent));
    }
    else
        Py_INCREF(rest);
    PyObject *entry = rest == NULL ? NULL : Py_BuildValue("ON", whose, rest);
    int result = entry == NULL ? -1 : PyList_Append(left, entry);
    Py_XDECREF(entry);
    return result;
}

/* As a socket's recv_into: how many bytes were received, or -1 with the exception set. */
static inline ssize_t receive_whole(int fd, const Py_buffer *buffer)
{
    ssize_t received;
    do
        received = recv(fd, buffer->buf, (size_t)buffer->len, 0);
    while (received < 0 && errno == EINTR);
    if (received < 0)
        PyErr_SetFromErrno(PyExc_OSError);
    return received;
}

#endif
