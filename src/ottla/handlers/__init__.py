"""One file for each API: decode, decide, act, answer.

Produce and Fetch are served inside the network's rounds and read their frames themselves. All others are a function
`handle(call, request)` that returns the response, or a coroutine of it where it must wait.
"""
