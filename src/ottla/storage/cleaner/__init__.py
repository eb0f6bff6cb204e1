"""The log cleaner: a compacted topic keeps, of each key, the record that was written last.

How a pass goes, in the order of the files:

1. `dirt.py`      which log is worth it, and from where up to where; nothing is read for that.
2. `job.py`       what the loop sends the worker process, and what it gets back: plain values.
3. `work.py`      the worker's side: the newest offset of each key of the dirty part goes into `key_map.py`, and then,
                  group by group, small segments are written into one without the records that are superseded.
4. `swap.py`      the loop's side: a finished segment takes the place of those that it was made from.
5. `rounds.py`    the order of all this for one log, as a generator of steps that somebody else runs.

The hot loops (`records/keys.py`, `key_map.py`, `batch_filter.py`) make no object a record but the key's own bytes.
"""
