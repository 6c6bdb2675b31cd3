"""A tensor that another process opens by CUDA's IPC, as torch.multiprocessing does. Prints its bytes."""
import json

import torch
import torch.multiprocessing as multiprocessing

BYTES = 64 << 20


def reader(queue, done):
    tensor = queue.get()
    done.put(int(tensor[:1024].sum()))
    queue.get()  # hold it until the parent has looked
    del tensor


def main():
    context = multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=reader, args=(queue, done))
    child.start()
    tensor = torch.ones(BYTES, dtype=torch.uint8, device="cuda")
    queue.put(tensor)
    total = done.get(timeout=80)
    queue.put(None)
    child.join(20)
    print(json.dumps({"bytes": BYTES, "sum": total, "child": child.pid}), flush=True)


if __name__ == "__main__":
    main()
