"""torch.profiler in a process where gpumemtrace has CUPTI's subscription, or not: says how many GPU
activities it got."""
import json

import torch

data = torch.ones(512, 512, device="cuda")
torch.cuda.synchronize()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU,
                                        torch.profiler.ProfilerActivity.CUDA]) as profiler:
    (data @ data).sum().item()
kinds = [str(event.device_type) for event in profiler.events()]
print(json.dumps({"gpu_activities": sum("CUDA" in kind for kind in kinds), "events": len(kinds)}))
