#!/bin/sh
# A worker in any language: a program for each message, the body on its standard input, the rest in its environment.
#
#     redrive serve &
#     sh crates/redrive/examples/exec_worker.sh
#
# It ends with 0 where the work is done, with 75 where it is to be tried later, with 100 where it must never be tried again.
# Anything else is a failure, and what it wrote last to its standard error is the message's error.
set -eu

redrive enqueue thumbnails cat.png

# The lease is extended for as long as the program runs. SIGTERM ends the worker: it takes nothing more, waits for what
# runs, and gives back what is left. Here the program itself asks its worker to end, so that the example does.
redrive work thumbnails --concurrency 2 --timeout 1m -- sh -c '
    file=$(cat)
    case $file in
        *.png) echo "a thumbnail of $file, attempt $REDRIVE_ATTEMPT" ;;
        *) echo "$file is no picture" >&2; exit 100 ;;
    esac
    kill -TERM $PPID
'
