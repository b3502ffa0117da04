"""The straightforward forms that the papers' authors published, in our own words, as a yardstick.

For each caption by itself: repeat it for all images, compare, build every attended vector, take
cosines, with the attended vectors lying in memory as theirs do, which is much of what they cost.
"""

import torch
from torch.nn import functional as F

EPS = 1e-8


def unit(x, dim):
    return x / (x.pow(2).sum(dim, keepdim=True).sqrt() + EPS)


def attention(query, context, sharpness):
    """Return the weights, (B, q, c); clipped_l2norm."""
    scores = torch.bmm(context, query.transpose(1, 2))  # (B, c, q)
    scores = unit(F.leaky_relu(scores, 0.1), 2).transpose(1, 2).contiguous()  # (B, q, c)
    return F.softmax(scores * sharpness, dim=2)


def attended(weights, context):
    """Return what each query fragment attends to, (B, q, D), in memory (B, D, q) as published."""
    turned = weights.transpose(1, 2).contiguous()  # (B, c, q)
    return torch.bmm(context.transpose(1, 2), turned).transpose(1, 2)


def cosine(a, b):
    top = (a * b).sum(2)
    return top / (a.norm(2, 2) * b.norm(2, 2)).clamp(min=EPS)


def scan(regions, words, lengths, direction, pooling, sharpness=9.0, lambda2=6.0):
    """Score (N, k, D) images with (M, n, D) captions, (N, M)."""
    columns = []
    for number, length in enumerate(lengths):
        caption = words[number, :length][None].repeat(len(regions), 1, 1)  # (N, n, D)
        query, context = (caption, regions) if direction == "t-i" else (regions, caption)
        weights = attention(query, context, sharpness)
        relevance = cosine(query, attended(weights, context))  # (N, q)
        if pooling == "LSE":
            columns.append((lambda2 * relevance).exp().sum(1).log() / lambda2)
        else:
            columns.append(relevance.mean(1))
    return torch.stack(columns, dim=1)


def focal(weights):
    """BFAN, equal: keep what lies above the mean, and let it sum to 1."""
    count = weights.shape[2]
    gain = count * weights - weights.sum(2, keepdim=True)
    kept = weights * torch.where(gain > 0, torch.ones_like(gain), torch.zeros_like(gain))
    return kept / kept.sum(2, keepdim=True)


def bfan(regions, words, lengths, sharpness=20.0):
    """Score (N, k, D) images with (M, n, D) captions in both directions, (N, M)."""
    columns = []
    for number, length in enumerate(lengths):
        caption = words[number, :length][None].repeat(len(regions), 1, 1)  # (N, n, D)
        total = 0
        for query, context in ((caption, regions), (regions, caption)):
            weights = focal(attention(query, context, sharpness))
            total = total + cosine(query, attended(weights, context)).mean(1)
        columns.append(total)
    return torch.stack(columns, dim=1)


def scan_gram(regions, words, lengths, sharpness=9.0):
    """SCAN t-i AVG with Gram matrices, every step recorded by autograd, (N, M)."""
    gram = regions @ regions.transpose(1, 2)  # (N, k, k)
    count, k = regions.shape[:2]
    columns = regions.new_zeros(count, len(words))
    for length in sorted(set(lengths)):
        chosen = [number for number, other in enumerate(lengths) if other == length]
        said = words[chosen, :length].transpose(0, 1)  # (n, m, D)
        scores = (regions.flatten(0, 1) @ said.flatten(0, 1).T).view(count, k, length, -1)
        normed = unit(F.leaky_relu(scores, 0.1), 2)
        weights = F.softmax(sharpness * normed, dim=1)  # (N, k, n, m)
        flat = weights.flatten(2)
        square = ((gram @ flat) * flat).sum(1).view(count, length, -1)
        top = (weights * scores).sum(1)
        relevance = top / (square.clamp(min=EPS**2).sqrt() * said.norm(dim=2)).clamp(min=EPS)
        columns = columns.index_copy(1, torch.tensor(chosen), relevance.mean(1))
    return columns
