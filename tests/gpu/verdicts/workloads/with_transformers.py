"""Programs with models of the package transformers, made from their configurations, as people write them:
with_transformers.py NAME. ../workloads.py has their labels."""
import collections
import copy
import sys
import tempfile

import torch
from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM, T5Config, T5ForConditionalGeneration, Trainer, TrainerCallback,
                          TrainingArguments, ViTConfig, ViTForImageClassification)

VOCABULARY = 2048
torch.manual_seed(0)


def gpt2(layers=4, width=256, positions=512):
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=positions, n_embd=width, n_layer=layers,
                                      n_head=4, bos_token_id=0, eos_token_id=1, pad_token_id=0)).cuda()


def llama(layers=4, width=256, positions=1024):
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=width, intermediate_size=2 * width,
                                        num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=8,
                                        max_position_embeddings=positions, bos_token_id=0, eos_token_id=1,
                                        pad_token_id=0)).cuda()


def bert(layers=4):
    return BertForSequenceClassification(BertConfig(
        vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=layers, num_attention_heads=4,
        intermediate_size=1024, num_labels=4)).cuda()


def vit():
    return ViTForImageClassification(ViTConfig(
        hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768, image_size=64,
        patch_size=8, num_labels=10)).cuda()


def tokens(batch=8, length=128):
    return torch.randint(2, VOCABULARY, (batch, length), device="cuda")


class Texts(torch.utils.data.Dataset):
    def __init__(self, count, length=128):
        self.rows = torch.randint(2, VOCABULARY, (count, length))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


class Images(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"pixel_values": torch.full((3, 64, 64), index / self.count), "labels": index % 10}


# ---- the package's own training loop ----


def arguments(folder, **others):
    return TrainingArguments(**{**dict(output_dir=folder, per_device_train_batch_size=8, max_steps=80, report_to="none",
                                       logging_steps=20, save_strategy="no", disable_tqdm=True), **others})


def trainer():
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model=gpt2(), train_dataset=Texts(512), eval_dataset=Texts(64),
                args=arguments(folder, eval_strategy="steps", eval_steps=20, save_strategy="steps", save_steps=40,
                               save_total_limit=1)).train()


class KeepsLogits(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **others):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **others)
        self.seen = getattr(self, "seen", [])
        self.seen.append(outputs.logits.detach())
        return (loss, outputs) if return_outputs else loss


def trainer_keeps_logits():
    with tempfile.TemporaryDirectory() as folder:
        KeepsLogits(model=gpt2(), train_dataset=Texts(512), args=arguments(folder)).train()


class SavesCopies(TrainerCallback):
    """Meant to save the best weights; keeps every version on the GPU."""

    def __init__(self):
        self.versions = []

    def on_step_end(self, args, state, control, model=None, **others):
        if state.global_step % 5 == 0:
            self.versions.append(copy.deepcopy(model.state_dict()))


def trainer_saves_copies():
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model=gpt2(), train_dataset=Texts(512), args=arguments(folder), callbacks=[SavesCopies()]).train()


def trainer_accumulates():
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model=gpt2(), train_dataset=Texts(512),
                args=arguments(folder, max_steps=30, gradient_accumulation_steps=4, bf16=True,
                               gradient_checkpointing=True, dataloader_num_workers=2)).train()


# ---- generation ----


def generate_requests():
    """Requests of different lengths; the cache grows within each one."""
    model = llama().eval()
    for request in range(14):
        prompt = tokens(4, 16 + request * 7 % 50)
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=40 + request * 11 % 37,
                       do_sample=False, eos_token_id=None)


def generate_static():
    """The cache has its full size from the start."""
    model = llama().eval()
    for _ in range(10):
        prompt = tokens(4, 32)
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=48, do_sample=False,
                       eos_token_id=None, cache_implementation="static", disable_compile=True)


def generate_beams():
    """T5: training, and an evaluation by beam search after every twentieth step."""
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=VOCABULARY, d_model=256, d_kv=64, d_ff=512, num_layers=3, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(80):
        optimizer.zero_grad()
        model(input_ids=tokens(), labels=tokens(8, 64)).loss.backward()
        optimizer.step()
        if step % 20 == 19:
            model.eval()
            model.generate(tokens(4, 64), max_new_tokens=24, num_beams=4, do_sample=False)
            model.train()


def answer(model, text, past=None):
    """One turn of a conversation by hand: the caches of its tokens are appended to the past ones."""
    with torch.no_grad():
        for _ in range(12):
            output = model(input_ids=text, past_key_values=past, use_cache=True)
            past, text = output.past_key_values, output.logits[:, -1:].argmax(-1)
    return past


conversations = collections.OrderedDict()


def chat_forgets():
    """Each user's cache is kept for the next turn, and no user is ever forgotten."""
    model = llama().eval()
    for user in range(60):
        conversations[user] = answer(model, tokens(4, 128))


def chat_bounded():
    """The caches of the latest eight users."""
    model = llama().eval()
    for turn in range(120):
        user = turn * 7 % 12
        past = conversations.pop(user, None)
        if past is not None and past.get_seq_length() > 400:
            past = None
        conversations[user] = answer(model, tokens(2, 64), past)
        if len(conversations) > 8:
            conversations.popitem(last=False)


class PrefixCache:
    """The caches of prompts that were seen, for requests that begin alike."""

    def __init__(self, model):
        self.model, self.prefixes = model, {}

    def prefill(self, key):
        if key not in self.prefixes:
            with torch.no_grad():
                self.prefixes[key] = self.model(input_ids=tokens(2, 256), use_cache=True).past_key_values
        return copy.deepcopy(self.prefixes[key])


def prefixes_unbounded():
    cache = PrefixCache(llama().eval())
    for request in range(100):
        answer(cache.model, tokens(2, 1), cache.prefill(f"user {request}: please"))


def prefixes_few():
    """Six system prompts."""
    cache = PrefixCache(llama().eval())
    for request in range(100):
        answer(cache.model, tokens(2, 1), cache.prefill(request % 6))


# ---- training loops by hand ----


def train_epoch(model, optimizer, steps, batch=8, length=128, scaler=None):
    for _ in range(steps):
        data = tokens(batch, length)
        with torch.autocast("cuda", torch.float16, enabled=scaler is not None):
            loss = model(input_ids=data, labels=data).loss
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()


def mixed_precision():
    model = gpt2()
    train_epoch(model, torch.optim.AdamW(model.parameters(), lr=1e-4), 100, scaler=torch.amp.GradScaler())


def checkpointing():
    model = llama()
    model.gradient_checkpointing_enable()
    model.config.use_cache = False
    model.train()
    train_epoch(model, torch.optim.AdamW(model.parameters(), lr=1e-4), 80, length=256)


class Adapter(torch.nn.Module):
    """A linear layer with a low-rank addition."""

    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = torch.nn.Linear(base.in_features, rank, bias=False, device="cuda")
        self.up = torch.nn.Linear(rank, base.out_features, bias=False, device="cuda")

    def forward(self, hidden):
        return self.base(hidden) + self.up(self.down(hidden))


def adapt(model):
    model.requires_grad_(False)
    for layer in model.model.layers:
        layer.self_attn.q_proj = Adapter(layer.self_attn.q_proj)
        layer.self_attn.v_proj = Adapter(layer.self_attn.v_proj)
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def low_rank():
    model = llama()
    train_epoch(model, torch.optim.AdamW(adapt(model), lr=1e-3), 100)


def warm_then_all():
    """The head for a while, then all layers, then a lower rate: an optimizer for each phase."""
    model = gpt2()
    model.transformer.requires_grad_(False)
    model.lm_head.requires_grad_(True)
    train_epoch(model, torch.optim.AdamW(model.lm_head.parameters()), 40)
    for rate in (1e-4, 1e-5):
        model.requires_grad_(True)
        train_epoch(model, torch.optim.AdamW(model.parameters(), lr=rate), 40)


def validate(model, batches):
    """The classical one: no no_grad(), and the losses are summed with their graphs."""
    total = 0
    for _ in range(batches):
        data = tokens()
        total = total + model(input_ids=data, labels=data).loss
    return total / batches


def validation_with_graph():
    """All of the program is one validation."""
    print(validate(gpt2(), 30).item())


def validation_rightly():
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(5):
        train_epoch(model, optimizer, 16)
        with torch.no_grad():
            print(validate(model, 12).item())


history = []


def train_and_log(model, optimizer, steps):
    for _ in range(steps):
        data = tokens()
        output = model(input_ids=data, labels=data)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(output)


def log_keeps_outputs():
    """The whole output is kept where its loss was wanted."""
    model = gpt2()
    train_and_log(model, torch.optim.AdamW(model.parameters(), lr=1e-4), 60)


def log_keeps_items():
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(100):
        data = tokens()
        output = model(input_ids=data, labels=data)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(output.loss.item())


def evaluate_all(model, count):
    model.eval()
    logits = []
    with torch.no_grad():
        for _ in range(count):
            logits.append(model(input_ids=tokens(64), output_hidden_states=True).hidden_states[-1])
    model.train()
    return logits


def evaluations_kept():
    """What each epoch's evaluation returns stays in a list of all epochs."""
    model = bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(14):
        for _ in range(8):
            model(input_ids=tokens(), labels=torch.randint(4, (8,), device="cuda")).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        history.append(evaluate_all(model, 2))


def evaluations_reduced():
    """Each evaluation gathers its predictions and reduces them to a figure."""
    model = bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(12):
        for _ in range(8):
            model(input_ids=tokens(), labels=torch.randint(4, (8,), device="cuda")).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        history.append(torch.cat(evaluate_all(model, 4)).mean().item())


def vision():
    """Workers, pinned memory, copies that do not block, a validation after each epoch."""
    model = vit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = torch.utils.data.DataLoader(Images(640), 32, shuffle=True, num_workers=2, pin_memory=True,
                                         persistent_workers=True, drop_last=True)
    for _ in range(4):
        for batch in loader:
            batch = {name: value.cuda(non_blocking=True) for name, value in batch.items()}
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for batch in loader:
                model(pixel_values=batch["pixel_values"].cuda())


features = {}


def remember(name):
    def hook(module, inputs, output):
        features.setdefault(name, []).append(output[0] if isinstance(output, tuple) else output)
    return hook


def extract(clear):
    model = vit().eval()
    for name, module in model.named_modules():
        if name.endswith(("attention", "mlp", "intermediate")):
            module.register_forward_hook(remember(name))
    for _ in range(60):
        with torch.no_grad():
            model(pixel_values=torch.randn(32, 3, 64, 64, device="cuda"))
        if clear:
            features.clear()


def features_kept():
    extract(False)


def features_cleared():
    extract(True)


# ---- models that come and go ----

registry = {}


def load_model(version):
    model = gpt2(layers=6)
    registry[version] = model
    return model


def serve(model, requests):
    with torch.no_grad():
        for _ in range(requests):
            model(input_ids=tokens(4, 64))


def reload_keeps():
    """A new version every now and then; the registry has them all."""
    for version in range(14):
        serve(load_model(version), 12)


def reload_replaces():
    for _ in range(14):
        serve(load_model("current"), 12)


def sweep(keep):
    """A search for the learning rate: each trial has a model of its own."""
    for trial in range(12):
        model = gpt2()
        train_epoch(model, torch.optim.AdamW(model.parameters(), lr=10 ** -(2 + trial / 4)), 8)
        registry[trial] = model if keep else sum(p.sum().item() for p in model.parameters())


def sweep_keeps_models():
    sweep(True)


def sweep_keeps_figures():
    sweep(False)


def average():
    """A moving average of the weights, and the best weights so far on the GPU."""
    model = gpt2()
    slow = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(8):
        train_epoch(model, optimizer, 12)
        slow.update_parameters(model)
        if epoch % 2 == 0:
            registry["best"] = {name: value.clone() for name, value in model.state_dict().items()}
        with tempfile.NamedTemporaryFile() as file:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file.name)
            saved = torch.load(file.name, map_location="cuda")
        optimizer.load_state_dict(saved["optimizer"])
        model.load_state_dict(saved["model"])


# ---- out of memory ----


def oom_weights():
    """A model that is too large for the device."""
    with torch.device("cuda"):
        llama(layers=24, width=2048)


def oom_batch():
    """The logits and activations of a batch that is too large."""
    model = gpt2(layers=8)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in (4, 8, 1024):
        train_epoch(model, optimizer, 1, batch=batch, length=512)


def oom_first_step():
    """Weights and gradients fit, Adam's state does not."""
    with torch.device("cuda"):
        model = llama(layers=12, width=1600)
    train_epoch(model, torch.optim.AdamW(model.parameters(), foreach=False), 5, batch=1, length=16)


def oom_cache():
    """A batch of requests whose caches do not fit."""
    model = llama(layers=8, width=1024, positions=4096).eval()
    answer(model, tokens(48, 2048))


def oom_leak():
    """The outputs of all steps, until the device is full."""
    model = gpt2()
    train_and_log(model, torch.optim.AdamW(model.parameters(), lr=1e-4), 100000)


def oom_validation():
    validate(gpt2(), 100000)


def oom_second_model():
    """The old version is in use while the new one is loaded, and both do not fit."""
    with torch.device("cuda"):
        model = llama(layers=14, width=2048)
        serve(model, 4)
        model = llama(layers=14, width=2048)
        serve(model, 4)


def oom_skipped():
    """A batch that does not fit is skipped, as many loops do."""
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(60):
        try:
            train_epoch(model, optimizer, 1, batch=2048 if step % 20 == 19 else 8, length=512)
        except torch.OutOfMemoryError:
            optimizer.zero_grad()
            torch.cuda.empty_cache()


def oom_largest_batch():
    """Doubles the batch until it does not fit, and trains with half of it."""
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch = 8
    while True:
        try:
            train_epoch(model, optimizer, 1, batch=batch, length=512)
            batch *= 2
        except torch.OutOfMemoryError:
            break
    optimizer.zero_grad()
    torch.cuda.empty_cache()
    train_epoch(model, optimizer, 20, batch=batch // 4, length=512)


def oom_limit():
    """A share of the device, set for a neighbour's sake."""
    torch.cuda.set_per_process_memory_fraction(0.01)
    model = gpt2(layers=8)
    train_epoch(model, torch.optim.AdamW(model.parameters()), 3, batch=256, length=512)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(f"live {torch.cuda.memory_allocated()} reserved {torch.cuda.memory_reserved()}", flush=True)
