"""The public code's checkpoints: a stand-in of that code, written from FACTS.md, is the oracle."""

import argparse
import itertools
import json
import pickle
import re

import pytest
import torch
from torch import nn

import crossgaze
from crossgaze.cli import main
from crossgaze.data.text.vocabulary import Vocabulary
from crossgaze.errors import FileFormatError, InputError
from crossgaze.models.checkpoints import import_checkpoint

D_IN, D, WORD, K, BATCH = 7, 6, 5, 4, 5
LENGTHS = torch.tensor([6, 5, 3, 2, 1])
CAPTIONS = [f"w{i} w{(i * 3) % 11} w{(i * 5) % 11}" for i in range(11)]
VOCAB = Vocabulary.build(CAPTIONS, 1)
NORMS = ["softmax", "l2norm", "l1norm", "clipped_l2norm", "clipped_l1norm", "clipped", "no_norm"]
POOLS = ["LogSumExp", "Max", "Sum", "Mean"]


def l2(x, dim):
    return x / (x.pow(2).sum(dim, keepdim=True).sqrt() + 1e-8)


def l1(x, dim):
    return x / (x.abs().sum(dim, keepdim=True) + 1e-8)


def gru(state, ids, lengths, layers=1):
    """Run the text state's GRU one sentence at a time, without padding."""
    wide = state["embed.weight"].shape[1]
    both = "rnn.weight_ih_l0_reverse" in state
    rnn = nn.GRU(wide, state["rnn.weight_hh_l0"].shape[1], batch_first=True, bidirectional=both)
    rnn.load_state_dict({k[4:]: v for k, v in state.items() if k.startswith("rnn.")})
    out = []
    for row, length in zip(ids, lengths, strict=True):
        y = rnn(state["embed.weight"][row[:length]][None])[0][0]
        out.append((y[:, : y.shape[1] // 2] + y[:, y.shape[1] // 2 :]) / 2 if both else y)
    return out


def project(state, regions):
    if "fc.weight_v" in state:
        weight = state["fc.weight_g"] * state["fc.weight_v"] / state["fc.weight_v"].norm()
    else:
        weight = state["fc.weight"]
    return regions @ weight.T + state["fc.bias"]


def attend(query, context, norm, smooth):
    """(q, D), (c, D) -> weights (q, c): FACTS.md's SCAN, one pair at a time."""
    s = context @ query.T  # (c, q)
    leaky = nn.functional.leaky_relu(s, 0.1)
    s = {
        "softmax": lambda: s.softmax(1),
        "l2norm": lambda: l2(s, 1),
        "l1norm": lambda: l1(s, 1),
        "clipped_l2norm": lambda: l2(leaky, 1),
        "clipped_l1norm": lambda: l1(leaky, 1),
        "clipped": lambda: leaky,
        "no_norm": lambda: s,
    }[norm]()
    return (s.T * smooth).softmax(1)


def relevance(query, context, weights):
    attended = weights @ context
    product = (query * attended).sum(1)
    return product / (query.norm(dim=1) * attended.norm(dim=1)).clamp(min=1e-8)


def public_scan(states, opt, regions, ids, lengths):
    images = project(states[0], regions)
    images = images if opt.no_imgnorm else l2(images, -1)
    words = gru(states[1], ids, lengths)
    words = words if opt.no_txtnorm else [l2(w, -1) for w in words]
    rows = []
    for image in images:
        row = []
        for word in words:
            query, context = (word, image) if opt.cross_attn == "t2i" else (image, word)
            weights = attend(query, context, opt.raw_feature_norm, opt.lambda_softmax)
            r = relevance(query, context, weights)
            row.append(
                {
                    "LogSumExp": lambda r: (r * opt.lambda_lse).exp().sum().log() / opt.lambda_lse,
                    "Max": lambda r: r.max(),
                    "Sum": lambda r: r.sum(),
                    "Mean": lambda r: r.mean(),
                }[opt.agg_func](r)
            )
        rows.append(torch.stack(row))
    return torch.stack(rows)


def public_bfan(states, opt, regions, ids, lengths):
    images = l2(project(states[0], regions), -1)
    words = [l2(w, -1) for w in gru(states[1], ids, lengths)]

    def direction(query, context):
        a = attend(query, context, "clipped_l2norm", opt.lambda_softmax)
        if opt.focal_type == "equal":
            focus = a.shape[1] * a - a.sum(1, keepdim=True)
        else:
            focus = a * a.sqrt().sum(1, keepdim=True) - (a * a.sqrt()).sum(1, keepdim=True)
        kept = torch.where(focus > 0, a, 0.0)
        kept = kept / kept.sum(1, keepdim=True)
        return relevance(query, context, kept).mean()

    return torch.stack(
        [torch.stack([direction(w, v) + direction(v, w) for w in words]) for v in images]
    )


def public_vsrn(states, opt, regions, ids, lengths, train=False):
    state, x = states[0], regions @ states[0]["fc.weight"].T + states[0]["fc.bias"]
    f30k = opt.data_name == "f30k_precomp"
    x = x if f30k else l2(x, 1)

    def batch_norm(name, y):
        stats = None if train else state[f"{name}.running_mean"]
        spread = None if train else state[f"{name}.running_var"]
        weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
        return nn.functional.batch_norm(y, stats, spread, weight, bias, training=train)

    v = x.transpose(1, 2)  # (B, D, k)
    for layer in range(1, 5):
        name = f"Rs_GCN_{layer}"
        parts = {
            p: nn.functional.conv1d(v, state[f"{name}.{p}.weight"], state[f"{name}.{p}.bias"])
            for p in ("g", "theta", "phi")
        }
        r = parts["theta"].transpose(1, 2) @ parts["phi"] / v.shape[2]
        y = (r @ parts["g"].transpose(1, 2)).transpose(1, 2)
        y = nn.functional.conv1d(y, state[f"{name}.W.0.weight"], state[f"{name}.W.0.bias"])
        v = v + batch_norm(f"{name}.W.1", y)
    x = l2(v.transpose(1, 2), 1)
    rnn = nn.GRU(D, D, batch_first=True)
    rnn.load_state_dict({k[8:]: s for k, s in state.items() if k.startswith("img_rnn.")})
    images = rnn(x)[1][0]
    images = batch_norm("bn", images) if f30k else images
    images = images if opt.no_imgnorm else l2(images, -1)
    texts = torch.stack([l2(w[-1], -1) for w in gru(states[1], ids, lengths)])
    return images @ texts.T


def rand(*shape):
    return torch.randn(*shape) * 0.5


def text_state(bi=True):
    state = {"embed.weight": rand(len(VOCAB), WORD)}
    for end in ("", "_reverse") if bi else ("",):
        state |= {
            f"rnn.weight_ih_l0{end}": rand(3 * D, WORD),
            f"rnn.weight_hh_l0{end}": rand(3 * D, D),
            f"rnn.bias_ih_l0{end}": rand(3 * D),
            f"rnn.bias_hh_l0{end}": rand(3 * D),
        }
    return state


def vsrn_state(f30k):
    state = {"fc.weight": rand(D, D_IN), "fc.bias": rand(D)}
    norms = ["bn"] if f30k else []
    for layer in range(1, 5):
        for part in ("g", "theta", "phi", "W.0"):
            state[f"Rs_GCN_{layer}.{part}.weight"] = rand(D, D, 1)
            state[f"Rs_GCN_{layer}.{part}.bias"] = rand(D)
        norms.append(f"Rs_GCN_{layer}.W.1")
    for name in norms:
        state |= {f"{name}.weight": rand(D), f"{name}.bias": rand(D)}
        state |= {f"{name}.running_mean": rand(D), f"{name}.running_var": rand(D).abs() + 0.5}
    for part in ("weight_ih", "weight_hh"):
        state[f"img_rnn.{part}_l0"] = rand(3 * D, D)
    for part in ("bias_ih", "bias_hh"):
        state[f"img_rnn.{part}_l0"] = rand(3 * D)
    return state


def options(**changes):
    base = {
        "img_dim": D_IN, "embed_size": D, "word_dim": WORD, "num_layers": 1, "bi_gru": True,
        "no_imgnorm": False, "no_txtnorm": False, "precomp_enc_type": "basic",
        "cross_attn": "t2i", "agg_func": "Mean", "lambda_lse": 6.0, "lambda_softmax": 9.0,
        "raw_feature_norm": "clipped_l2norm", "focal_type": "equal", "data_name": "f30k_precomp",
        "margin": 0.2, "max_violation": True, "learning_rate": 2e-4,
    }  # fmt: skip
    return argparse.Namespace(**(base | changes))


def save(path, states, opt, prefix=""):
    states = [{prefix + k: v for k, v in state.items()} for state in states]
    raw = {"epoch": 3, "model": states, "best_rsum": 321.5, "opt": opt, "Eiters": 99}
    torch.save(raw, path)
    return path


def inputs():
    ids = torch.randint(4, len(VOCAB), (BATCH, int(LENGTHS.max())))
    return rand(BATCH, K, D_IN), ids, LENGTHS


def scores(model, regions, ids, lengths):
    return model.similarity(model.encode_images(regions), model.encode_tokens(ids, lengths))


def plain_states(bi=True, weight_norm=False):
    image = {"fc.weight": rand(D, D_IN), "fc.bias": rand(D)}
    if weight_norm:
        image = {"fc.weight_g": torch.tensor(1.7), "fc.weight_v": rand(D, D_IN), "fc.bias": rand(D)}
    return [image, text_state(bi)]


@pytest.mark.parametrize(
    ("norm", "pool", "direction"), [*itertools.product(NORMS, POOLS, ["t2i", "i2t"])]
)
def test_scan_scores_as_the_public_code(tmp_path, norm, pool, direction):
    torch.manual_seed(0)
    opt = options(raw_feature_norm=norm, agg_func=pool, cross_attn=direction, lambda_softmax=4.0)
    states, data = plain_states(), inputs()
    model = import_checkpoint(save(tmp_path / "c.pth.tar", states, opt), "scan")
    ours, theirs = scores(model, *data), public_scan(states, opt, *data)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"no_imgnorm": True},
        {"no_txtnorm": True},
        {"bi_gru": False},
        {"precomp_enc_type": "weight_norm"},
    ],
)
def test_scans_other_options_are_taken(tmp_path, changes):
    torch.manual_seed(1)
    opt = options(**changes)
    states = plain_states(opt.bi_gru, opt.precomp_enc_type == "weight_norm")
    data = inputs()
    path = save(tmp_path / "c.pth.tar", states, opt, prefix="module.")
    model = import_checkpoint(path, "scan")
    torch.testing.assert_close(
        scores(model, *data), public_scan(states, opt, *data), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("focal", ["equal", "prob"])
def test_bfan_scores_as_the_public_code(tmp_path, focal):
    torch.manual_seed(2)
    opt = options(focal_type=focal, lambda_softmax=20.0)
    del opt.bi_gru  # BFAN's code has no such option and always reads both ways
    states, (regions, ids, _) = plain_states(), inputs()
    data = regions, ids, torch.tensor([6, 5, 3, 2, 2])  # the public code gives NaN for one word
    model = import_checkpoint(save(tmp_path / "c.pth.tar", states, opt), "bfan")
    torch.testing.assert_close(
        scores(model, *data), public_bfan(states, opt, *data), atol=1e-5, rtol=1e-5
    )


def hardest_loss(s, margin=0.2):
    diagonal = s.diag()
    off = ~torch.eye(len(s), dtype=bool)
    captions = ((margin + s - diagonal[:, None]).clamp(min=0) * off).max(1)[0]
    images = ((margin + s - diagonal[None]).clamp(min=0) * off).max(0)[0]
    return captions.sum() + images.sum()


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("data_name", ["f30k_precomp", "coco_precomp"])
def test_vsrn_scores_loss_and_gradient_as_the_public_code(tmp_path, data_name, train):
    torch.manual_seed(3)
    opt = options(data_name=data_name, bi_gru=False)
    states, data = [vsrn_state(data_name == "f30k_precomp"), text_state(bi=False)], inputs()
    model = import_checkpoint(save(tmp_path / "c.pth.tar", states, opt), "vsrn").train(train)
    states = [
        {k: v.clone().requires_grad_("running" not in k) for k, v in state.items()}
        for state in states
    ]
    ours, theirs = scores(model, *data), public_vsrn(states, opt, *data, train=train)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    loss, expected = hardest_loss(ours), hardest_loss(theirs)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-6)
    loss.backward()
    expected.backward()
    image = states[0]["fc.weight"].grad
    torch.testing.assert_close(model.fc.weight.grad.norm(), image.norm(), rtol=1e-4, atol=1e-6)


def test_vse_scores_as_the_public_code(tmp_path):
    torch.manual_seed(4)
    states, (regions, ids, lengths) = plain_states(bi=False), inputs()
    path = save(tmp_path / "c.pth.tar", states, options(bi_gru=False, measure="cosine"))
    model = import_checkpoint(path, "vse++")
    images = l2(project(states[0], regions[:, 0]), -1)  # one global feature an image
    texts = torch.stack([l2(w[-1], -1) for w in gru(states[1], ids, lengths)])
    ours = model.similarity(model.encode_images(regions[:, 0]), model.encode_tokens(ids, lengths))
    torch.testing.assert_close(ours, images @ texts.T, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("family", "bi"), [("vsrn", False), ("vse++", False)])
def test_vectors_without_signs_are_taken_so(tmp_path, family, bi):
    torch.manual_seed(5)
    states = [vsrn_state(True) if family == "vsrn" else plain_states()[0], text_state(bi)]
    regions, ids, lengths = inputs()
    plain = import_checkpoint(save(tmp_path / "a", states, options()), family)
    model = import_checkpoint(save(tmp_path / "b", states, options(use_abs=True)), family)
    images, texts = plain.encode_images(regions).vectors, plain.encode_tokens(ids, lengths).vectors
    torch.testing.assert_close(scores(model, regions, ids, lengths), images.abs() @ texts.abs().T)


def test_a_single_number_of_old_torch_is_taken(tmp_path):
    states, opt = plain_states(weight_norm=True), options(precomp_enc_type="weight_norm")
    expected = import_checkpoint(save(tmp_path / "a", states, opt), "scan")
    states[0]["fc.weight_g"] = states[0]["fc.weight_g"].reshape(1)
    data = inputs()
    model = import_checkpoint(save(tmp_path / "b", states, opt), "scan")
    torch.testing.assert_close(scores(model, *data), scores(expected, *data))


def test_what_json_cannot_hold_is_not_kept(tmp_path):
    raw = {"epoch": 1, "model": plain_states(), "best_rsum": float("nan"), "opt": options()}
    raw["opt"].odd, raw["opt"].steps = float("inf"), [1, 2]
    torch.save(raw, tmp_path / "c")
    model = import_checkpoint(tmp_path / "c", "scan")
    model.save_pretrained(tmp_path / "m")
    origin = crossgaze.load(tmp_path / "m").origin
    assert "best_rsum" not in origin
    assert "odd" not in origin["opt"]
    assert origin["opt"]["steps"] == [1, 2]


def test_the_vocabulary_comes_with_it_and_all_of_it_is_saved(tmp_path):
    path = save(tmp_path / "c.pth.tar", plain_states(), options())
    VOCAB.save(tmp_path / "v.json")
    model = import_checkpoint(path, "scan", tmp_path / "v.json")
    model.save_pretrained(tmp_path / "m")
    again = crossgaze.load(tmp_path / "m")
    regions = rand(2, K, D_IN)
    texts = ["w1 w3", "w2"]
    expected = model.similarity(model.encode_images(regions), model.encode_texts(texts))
    found = again.similarity(again.encode_images(regions), again.encode_texts(texts))
    torch.testing.assert_close(found, expected)
    assert again.origin["opt"]["margin"] == 0.2
    assert again.origin["best_rsum"] == 321.5


def test_without_a_vocabulary_numbers_are_read_but_no_text(tmp_path):
    model = crossgaze.import_checkpoint(
        save(tmp_path / "c.pth.tar", plain_states(), options()), "scan"
    )
    with pytest.raises(InputError, match="this model has no vocabulary"):
        model.encode_texts(["w1"])
    model.save_pretrained(tmp_path / "m")
    again = crossgaze.load(tmp_path / "m")
    data = inputs()
    torch.testing.assert_close(scores(again, *data), scores(model, *data))


class Malice:
    def __reduce__(self):
        return (print, ("PWNED",))


def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, capsys):
    for name, bad in {"opt": Malice(), "model": [Malice(), {}]}.items():
        raw = {"epoch": 1, "model": plain_states(), "opt": options()} | {name: bad}
        torch.save(raw, tmp_path / "c.pth.tar")
        with pytest.raises(FileFormatError, match=r"refused: the pickle asks for .*print"):
            import_checkpoint(tmp_path / "c.pth.tar", "scan")
    (tmp_path / "d.pth.tar").write_bytes(pickle.dumps(Malice()))
    with pytest.raises(FileFormatError, match="refused"):
        import_checkpoint(tmp_path / "d.pth.tar", "scan")
    assert "PWNED" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda raw: raw["model"][0].pop("fc.bias"),
            r"does not fit the model: missing regions",
        ),
        (lambda raw: raw["model"][0].update(x=torch.ones(1)), r"unexpected x"),
        (
            lambda raw: raw["model"][0].update({"fc.bias": torch.ones(3)}),
            r"regions.bias has shape \(3,\), wanted \(6,\)",
        ),
        (lambda raw: raw["model"][1].pop("embed.weight"), "no embed.weight"),
        (lambda raw: raw.update(model={}), r"its model is a dict, wanted \[image state, text"),
        (lambda raw: raw.update(model=[1, 2]), "are not named tensors"),
        (lambda raw: raw.update(opt=3), "its opt is a int"),
        (lambda raw: raw.pop("opt"), "wanted a checkpoint with 'model' and 'opt'"),
        (lambda raw: vars(raw["opt"]).pop("img_dim"), "its opt has no 'img_dim'"),
        (lambda raw: vars(raw["opt"]).update(agg_func="Min"), "agg_func = 'Min', wanted one of"),
        (lambda raw: vars(raw["opt"]).update(raw_feature_norm="x"), "feature_norm"),
        (lambda raw: vars(raw["opt"]).update(raw_feature_norm="paper"), "feature_norm = 'paper'"),
        (lambda raw: vars(raw["opt"]).update(cross_attn=["t2i"]), "cross_attn = "),
        (lambda raw: vars(raw["opt"]).update(embed_size=40_000), "does not fit the model"),
        (
            lambda raw: raw["model"][1].update({"embed.weight": torch.zeros(1).expand(10**9, 4)}),
            "its embed.weight is not a plain, whole tensor",
        ),
        (
            lambda raw: raw["model"][0].update({"module.fc.bias": torch.ones(6)}),
            "both with and without 'module.'",
        ),
        (
            lambda raw: vars(raw["opt"]).update(lambda_lse=None),
            "lambda_lse = None, wanted",
        ),
        (lambda raw: vars(raw["opt"]).update(embed_size=6.5), "embed_size = 6.5, wanted a whole"),
        (lambda raw: vars(raw["opt"]).update(no_imgnorm="False"), "no_imgnorm = 'False', wanted"),
        (
            lambda raw: vars(raw["opt"]).update(embed_size=10**400),
            "embed_size = 1000.*0, wanted a n",
        ),
        (lambda raw: vars(raw["opt"]).update(embed_size=torch.ones(9, 9)), "embed_size = tensor"),
        (
            lambda raw: raw.update(opt={1: 2, "x": 3}),
            r"its opt has no 'img_dim', it has \['1', 'x'",
        ),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_named(tmp_path, change, message):
    raw = {"epoch": 1, "model": plain_states(), "best_rsum": 1.0, "opt": options()}
    change(raw)
    torch.save(raw, tmp_path / "c.pth.tar")
    with pytest.raises(InputError, match=message) as caught:
        import_checkpoint(tmp_path / "c.pth.tar", "scan")
    assert str(caught.value).startswith(str(tmp_path / "c.pth.tar"))


def test_other_mistakes_are_named(tmp_path):
    path = save(tmp_path / "c.pth.tar", plain_states(), options())
    with pytest.raises(InputError, match=r"family: got 'scam' \(did you mean 'scan'\?\)"):
        import_checkpoint(path, "scam")
    with pytest.raises(InputError, match="no such file, wanted a checkpoint"):
        import_checkpoint(tmp_path / "no", "scan")
    Vocabulary.build(["a b"], 1).save(tmp_path / "v.json")
    with pytest.raises(InputError, match="has 6 words, the checkpoint's embedding"):
        import_checkpoint(path, "scan", tmp_path / "v.json")
    measured = save(tmp_path / "d.pth.tar", plain_states(False), options(measure="order"))
    for family in ("vse++", "vsrn"):
        with pytest.raises(FileFormatError, match="measure = 'order'"):
            import_checkpoint(measured, family)


def test_the_verb_writes_a_model_that_loads(tmp_path, capsys):
    path = save(tmp_path / "c.pth.tar", plain_states(), options())
    VOCAB.save(tmp_path / "v.json")
    words = ["import", str(path), str(tmp_path / "m"), "--family", "scan"]
    assert main([*words, "--vocab", str(tmp_path / "v.json")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"direction +t-i", out)
    assert re.search(r"normalize_images +yes", out)
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vocabulary"] is None
    assert crossgaze.load(tmp_path / "m").config.lambda1 == 9
    assert main(["import", str(path), str(tmp_path / "m"), "--family", "scam"]) == 2


def test_options_that_json_cannot_hold_are_left_out_of_the_origin(tmp_path):
    own = []
    own.append(own)
    odd = {"own": own, "huge": 10**100, "nan": float("nan"), "half": "\ud800", "kept": [1, "a"]}
    path = save(tmp_path / "c.pth.tar", plain_states(), options(**odd))
    model = import_checkpoint(path, "scan")
    assert model.origin["opt"]["kept"] == [1, "a"]
    assert not model.origin["opt"].keys() & {"own", "huge", "nan"}
    model.save_pretrained(tmp_path / "m")
    assert crossgaze.load(tmp_path / "m").origin["opt"]["half"] == "\ud800"
