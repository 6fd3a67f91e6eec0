"""A GPT-2 of two layers, and samples for it that are known by their first token."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

TOKENS = 32


def model_of(vocabulary):
    # Not the fused attention: on a GPU its gradients differ from run to run.
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_positions=TOKENS, n_embd=64, n_layer=2, n_head=2,
                                      bos_token_id=0, eos_token_id=0, attn_implementation="eager"))


def samples_of(count):
    samples = [torch.randint(count, (TOKENS,), generator=torch.Generator().manual_seed(number))
               for number in range(count)]
    for number, tokens in enumerate(samples):
        tokens[0] = number
    return [{"input_ids": tokens, "labels": tokens} for tokens in samples]
