"""BERT as a text encoder: tokens, features, what is kept, and what is not saved."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from bert_parts import HIDDEN, WORDS, save_bert
from crossgaze.errors import InputError
from crossgaze.models.bert import BertText
from crossgaze.models.encoded import real
from crossgaze.models.text import TextConfig
from model_parts import count_calls, ready

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def config(folder):
    return TextConfig(kind="bert", bert=str(folder))


# The BERT itself as loops over its equations (Vaswani 2017, Devlin 2019), in NumPy float64.


def norm(x, state, name):
    mean, variance = x.mean(), ((x - x.mean()) ** 2).mean()
    return (x - mean) / np.sqrt(variance + 1e-12) * state[f"{name}.weight"] + state[f"{name}.bias"]


def layer(x, state, name):
    return state[f"{name}.weight"] @ x + state[f"{name}.bias"]


def gelu(x):
    return np.array([v * 0.5 * (1 + torch.erf(torch.tensor(v / 2**0.5)).item()) for v in x])


def naive_bert(ids, state):
    table = {name: f"embeddings.{name}_embeddings.weight" for name in ("word", "position")}
    xs = [
        norm(
            state[table["word"]][number]
            + state[table["position"]][place]
            + state["embeddings.token_type_embeddings.weight"][0],
            state,
            "embeddings.LayerNorm",
        )
        for place, number in enumerate(ids)
    ]
    for number in range(2):
        at = f"encoder.layer.{number}"
        q, k, v = (
            [layer(x, state, f"{at}.attention.self.{part}") for x in xs]
            for part in ("query", "key", "value")
        )
        new = []
        for i, x in enumerate(xs):
            context = []
            for head in (slice(0, 4), slice(4, 8)):
                scores = np.array([q[i][head] @ k[j][head] / 2.0 for j in range(len(xs))])
                weights = np.exp(scores) / np.exp(scores).sum()
                context.append(sum(w * v[j][head] for j, w in enumerate(weights)))
            joined = layer(np.concatenate(context), state, f"{at}.attention.output.dense")
            x = norm(x + joined, state, f"{at}.attention.output.LayerNorm")
            fed = gelu(layer(x, state, f"{at}.intermediate.dense"))
            fed = layer(fed, state, f"{at}.output.dense")
            new.append(norm(x + fed, state, f"{at}.output.LayerNorm"))
        xs = new
    return np.stack(xs)


# How much of a BERT is trained: nothing, its last layer, both, all.
TRAINED = [{}, {"tuned": 1}, {"tuned": 2}, {"frozen": False}]


def state_of(encoder):
    """Return the weights of the whole BERT by the names that it has them under."""
    state = dict(encoder.bert.state_dict())
    below = len(encoder.bert.encoder.layer)
    for number, layer in enumerate([] if encoder.tuned is None else encoder.tuned.layers):
        for name, part in layer.state_dict().items():
            state[f"encoder.layer.{below + number}.{name}"] = part
    return state


@pytest.mark.parametrize("trained", TRAINED)
def test_features_equal_loops_over_berts_equations(config, trained):
    encoder = BertText(5, replace(config, **trained)).double().eval()
    texts = ["a dog runs", "cat", "a red red cat runs"]
    ids, lengths = ready(texts, encoder)
    out = encoder(ids, lengths).detach().numpy()
    state = {name: part.numpy() for name, part in state_of(encoder).items()}
    weight, bias = (part.detach().numpy() for part in encoder.project.parameters())
    worst = 0.0
    for row, text in zip(out, texts, strict=True):
        numbers = encoder.tokenize(text)
        want = naive_bert(numbers, state) @ weight.T + bias
        worst = max(worst, float(abs(row[: len(numbers)] - want).max()))
        assert (row[len(numbers) :] == 0).all()
    assert worst < 1e-12, worst


def test_tokenize_gives_word_pieces_between_cls_and_sep(config):
    encoder = BertText(4, config)
    assert encoder.tokens("A Dog runs emu") == ["[CLS]", "a", "dog", "run", "##s", "[UNK]", "[SEP]"]
    assert encoder.tokenize("A Dog runs emu") == [2, 5, 6, 7, 8, 1, 3]
    assert encoder.tokenize("") == encoder.tokenize(" \n\t") == []
    assert encoder.tokens("") == []
    assert encoder.vocabulary is None
    assert encoder.words == len(WORDS)


def test_a_long_text_is_cut_to_what_bert_can_read(config):
    encoder = BertText(4, config)
    numbers = encoder.tokenize("dog " * 30)
    assert numbers == [2, *[6] * 8, 3]
    assert encoder(torch.tensor([numbers]), torch.tensor([10])).shape == (1, 10, 4)


def test_numbers_that_bert_does_not_know_are_refused(config):
    encoder = BertText(4, config)
    lengths = torch.tensor([2])
    encoder.require_known(torch.tensor([[2, 10, 99]]), lengths)  # 99 is padding
    for wrong in (11, -1):
        with pytest.raises(InputError, match=rf"ids: {wrong} is no word piece .* has 11"):
            encoder.require_known(torch.tensor([[2, wrong, 0]]), lengths)
    with pytest.raises(InputError, match="lengths: a caption has 11 tokens, the BERT can read 10"):
        encoder.require_known(torch.full((1, 11), 5), torch.tensor([11]))


def test_a_frozen_bert_runs_once_a_caption(config):
    encoder = BertText(4, config)
    calls = count_calls(encoder)
    ids, lengths = ready(["a dog", "a cat runs", "a dog"], encoder)
    first = encoder(ids, lengths)
    assert calls == [2]
    ids[0, int(lengths[0]) :] = 9  # other padding, the same caption
    assert torch.equal(encoder(ids, lengths), first)
    assert calls == [2]
    encoder(*ready(["a cat runs", "red"], encoder))
    assert calls == [2, 1]


def test_a_frozen_bert_has_no_gradients_no_parameters_and_no_dropout(config):
    encoder = BertText(4, config)
    parent = torch.nn.Sequential(encoder).train()
    assert not encoder.bert.training
    ids, lengths = ready(["a dog runs"], encoder)
    out = parent[0](ids, lengths)
    encoder.cache.clear()
    assert torch.equal(parent[0](ids, lengths), out)  # dropout of 0.5 would show
    out.sum().backward()
    assert all(part.grad is None for part in encoder.bert.parameters())
    assert encoder.project.weight.grad is not None
    assert sorted(parent.state_dict()) == ["0.project.bias", "0.project.weight"]
    assert sum(part.numel() for part in parent.parameters()) == HIDDEN * 4 + 4
    parent.requires_grad_(True)
    assert not any(part.requires_grad for part in encoder.bert.parameters())


def test_dropout_is_of_berts_features_and_only_in_training(config):
    torch.manual_seed(0)
    encoder = BertText(64, replace(config, dropout=0.5)).eval()
    ids, lengths = ready(["a dog runs"], encoder)
    plain = encoder(ids, lengths)
    hidden = encoder.hidden(ids, lengths)[0]  # (n, hidden)
    assert torch.equal(encoder(ids, lengths), plain)
    shown = encoder.train()(ids, lengths)[0]  # (n, 64)
    # 64 sums of `hidden` products tell which of them were there: each is 0 or twice itself.
    found = torch.linalg.lstsq(encoder.project.weight, (shown - encoder.project.bias).T).solution.T
    kept = found.abs() > 1e-4
    assert torch.allclose(found, torch.where(kept, 2 * hidden, 0.0), atol=1e-4)
    assert 0 < int(kept.sum()) < kept.numel()


def test_words_of_its_own_are_added_to_what_bert_gives(config):
    """e_k = W BERT_k + b + P w_k, by loops; a piece that was never learned adds nothing."""
    torch.manual_seed(0)
    encoder = BertText(6, replace(config, own_words=3))
    ids, lengths = ready(["a red dog", "cats"], encoder)
    words, spread = encoder.own
    without = BertText(6, config)
    without.project.load_state_dict(encoder.project.state_dict())
    torch.testing.assert_close(encoder(ids, lengths), without(ids, lengths))
    with torch.no_grad():
        words.weight[5:8] = torch.randn(3, 3)
        found, plain = encoder(ids, lengths), without(ids, lengths)
    table, wide = words.weight.tolist(), spread.weight.tolist()
    for n, length in enumerate(lengths.tolist()):
        for k in range(ids.shape[1]):
            more = [sum(wide[d][r] * table[ids[n, k]][r] for r in range(3)) for d in range(6)]
            wanted = plain[n, k] + torch.tensor(more) if k < length else torch.zeros(6)
            torch.testing.assert_close(found[n, k], wanted)


def test_words_of_its_own_learn_from_their_zeros_on(config):
    encoder = BertText(6, replace(config, own_words=3))
    ids, lengths = ready(["a red dog", "cats"], encoder)
    encoder(ids, lengths).square().sum().backward()
    grad = encoder.own[0].weight.grad
    real_ids = {int(i) for row, n in zip(ids, lengths, strict=True) for i in row[:n]}
    assert {i for i in range(len(WORDS)) if bool(grad[i].any())} == real_ids
    assert "own.0.weight" in encoder.state_dict()


def test_words_of_its_own_are_for_a_bert():
    with pytest.raises(InputError, match=r"text.own_words: a gru has words of its own"):
        TextConfig(own_words=4)


def test_a_sentence_is_the_mean_of_its_real_pieces(config):
    encoder = BertText(4, config)
    ids, lengths = ready(["a dog runs", "red"], encoder)
    features = encoder(ids, lengths).detach() + 1.0  # not zero past the real ones either
    found = encoder.whole(features, lengths)
    for row, part, count in zip(found, features, lengths.tolist(), strict=True):
        wanted = sum(part[place] for place in range(count)) / count
        assert torch.allclose(row, wanted, atol=1e-6)


def test_a_free_bert_is_trained_and_saved_with_the_model(config):
    encoder = BertText(4, replace(config, frozen=False)).train()
    assert encoder.bert.training
    ids, lengths = ready(["a dog runs"], encoder)
    calls = count_calls(encoder)
    first = encoder(ids, lengths)
    assert not torch.equal(encoder(ids, lengths), first)  # dropout, and nothing is kept
    assert calls == [1, 1]
    assert len(encoder.cache) == 0
    first.sum().backward()
    assert all(part.grad is not None for part in encoder.bert.parameters())
    names = set(encoder.state_dict())
    assert {f"bert.{name}" for name in encoder.bert.state_dict()} < names


def test_the_last_layers_are_trained_and_those_below_kept(config):
    encoder = BertText(4, replace(config, tuned=1)).train()
    ids, lengths = ready(["a dog runs", "cat"], encoder)
    calls = count_calls(encoder)
    first = encoder(ids, lengths)
    assert not torch.equal(encoder(ids, lengths), first)  # dropout in the last layer
    assert calls == [2]  # those below were run once
    first.sum().backward()
    trained = list(encoder.pretrained())
    assert len(trained) == len(list(encoder.tuned.layers[0].parameters())) > 0
    assert all(part.grad is not None for part in trained)
    assert all(part.grad is None for part in encoder.bert.parameters())
    assert {name.split(".")[0] for name in encoder.state_dict()} == {"tuned", "project"}
    assert list(BertText(4, config).pretrained()) == []
    whole = BertText(4, replace(config, frozen=False))
    assert len(list(whole.pretrained())) == len(list(whole.bert.parameters()))


def test_layers_that_cannot_be_trained_are_refused(config):
    with pytest.raises(InputError, match=r"text.tuned: is 3, wanted 2, BERT's layers, or less"):
        BertText(4, replace(config, tuned=3))
    for wrong in ({"frozen": False}, {"kind": "gru"}):
        with pytest.raises(InputError, match=r"text.tuned: is of a frozen bert alone"):
            replace(config, tuned=1, **wrong)


def test_the_cache_forgets_what_was_not_used_for_longest(config):
    encoder = BertText(4, config, cache_captions=2)
    calls = count_calls(encoder)
    for text in ("dog", "cat", "dog", "red", "dog"):  # cat leaves when red comes
        encoder(*ready([text], encoder))
    assert calls == [1, 1, 1]
    encoder(*ready(["cat"], encoder))
    assert calls == [1, 1, 1, 1]
    assert len(encoder.cache) == 2
    # More captions at once than are kept: all are right all the same.
    whole = BertText(4, config)
    whole.load_state_dict(encoder.state_dict())
    batch = ready(["dog", "cat", "red", "a", "a dog"], encoder)
    torch.testing.assert_close(encoder(*batch), whole(*batch))
    assert len(encoder.cache) == 2
    none = BertText(4, config, cache_captions=0)
    none(*batch)
    assert len(none.cache) == 0


def test_the_cache_is_exact_unless_asked_otherwise(config):
    exact, half = BertText(4, config), BertText(4, config, cache_dtype=torch.float16)
    half.load_state_dict(exact.state_dict())
    batch = ready(["a dog runs", "cat"], exact)
    want = exact.project(exact.hidden(*batch))[0]
    torch.testing.assert_close(exact(*batch)[0], want, rtol=1e-6, atol=1e-6)
    out = half(*batch)[0]
    assert out.dtype == torch.float32
    assert 1e-6 < (out - want).abs().max() < 1e-2
    assert next(iter(half.cache._parts.values())).dtype == torch.float16


@pytest.mark.parametrize("trained", TRAINED)
def test_batch_and_padding_change_nothing(config, trained, monkeypatch):
    monkeypatch.setattr("crossgaze.models.tuned_layers.PART", 4)  # parts of unlike lengths
    encoder = BertText(4, replace(config, **trained)).double().eval()
    texts = [f"{a} {b}" for a in ("a", "red", "dog runs") for b in ("dog", "cat runs red", "")]
    ids, lengths = ready(texts, encoder)
    wide = torch.cat([ids, torch.zeros(len(ids), 3, dtype=torch.long)], dim=1)
    wide[~real(lengths, wide.shape[1])] = 99  # no token has this number
    together = encoder(wide, lengths)
    assert together.shape == (9, ids.shape[1] + 3, 4)
    for number, text in enumerate(texts):
        encoder.cache.clear()
        alone = encoder(*ready([text], encoder))[0]
        torch.testing.assert_close(together[number, : len(alone)], alone, rtol=0, atol=1e-12)
        assert (together[number, len(alone) :] == 0).all()
    assert encoder(ids[:0], lengths[:0]).shape == (0, ids.shape[1], 4)


def test_more_captions_than_a_block(config, monkeypatch):
    monkeypatch.setattr("crossgaze.models.bert.BLOCK", 2)
    encoder = BertText(4, config).double()
    calls = count_calls(encoder)
    batch = ready(["a", "a dog runs", "cat", "red cat", "a red dog"], encoder)
    out = encoder(*batch)
    assert calls == [2, 2, 1]
    want = encoder.project(encoder.hidden(*batch))
    for row, right, count in zip(out, want, batch[1], strict=True):
        torch.testing.assert_close(row[:count], right[:count], rtol=0, atol=1e-12)


def test_what_inference_mode_and_autocast_kept_serves_training(config):
    plain, encoder = BertText(4, config), BertText(4, config)
    batch = ready(["a dog runs"], encoder)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        encoder(*ready(["a dog runs"], encoder))
    calls = count_calls(encoder)
    encoder.load_state_dict(plain.state_dict())
    out = encoder(*batch)
    assert torch.equal(out, plain(*batch))  # not rounded to bfloat16
    out.sum().backward()
    assert calls == []


def test_a_frozen_bert_moves_along(config):
    encoder = BertText(4, config)
    parent = torch.nn.Sequential(encoder)
    batch = ready(["a dog runs"], encoder)
    single = encoder(*batch)
    parent.double()
    assert encoder.bert.dtype == torch.float64
    double = encoder(*batch)
    assert double.dtype == torch.float64
    encoder.cache.clear()
    assert torch.equal(encoder(*batch), double)  # so they were not the float32 features again
    assert 0 < (double - single).abs().max() < 1e-5
    parent.to("cpu")
    assert len(encoder.cache) == 1  # the weights are the same: so is what they gave
    parent.to("meta")
    assert encoder.bert.device.type == "meta"


def test_copies_and_pickles_start_with_an_empty_cache(config):
    encoder = BertText(4, config)
    batch = ready(["a dog runs"], encoder)
    want = encoder(*batch)
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert len(twin.cache) == 0
        assert twin.cache.limit == 200_000
        assert torch.equal(twin(*batch), want)
        assert twin.bert is not encoder.bert
    assert len(encoder.cache) == 1
