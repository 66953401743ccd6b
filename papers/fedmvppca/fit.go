package fedmvppca

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/ppca"
	"parley/methods/published/fedmvppca"
	"parley/methods/published/vae"
	"parley/papers/deal"
	"parley/papers/experiment"
	"parley/study"
)

var methods = method.Registry{factors.Method{}, fedmvppca.Method{}, vae.Method{}}

// folds of every cross-validation.
const folds = 3

// condition is the circumstances under which methods are compared.
type condition struct {
	data     source
	scenario evaluate.Scenario
	sites    int
	// own says that every site brings its rows to [0, 1] by its own minimum and maximum, as
	// the paper's code does; else all rows are by those of all training rows together.
	own bool
}

// fits fits a model to the sites of a division.
type fits = func(ctx context.Context, c condition, d *division, seed uint64) (evaluate.Model, error)

// rival is what is fitted.
type rival struct {
	name string
	fit  fits
	// whole says that it needs every view at every site.
	whole bool
	// fails says that a fit may come to nothing, as the published noise can grow without end.
	fails bool
}

// keys are what a plan says under a key.
type keys = deal.Keys

// says is what a plan says of its method and of privacy; nil is no privacy.
type says = func(c condition, d *division) (method, privacy keys)

// federated fits a method by a study over the sites, of rows that are scaled already.
func federated(name string, whole bool, say says) rival {
	fit := func(ctx context.Context, c condition, d *division, seed uint64) (evaluate.Model, error) {
		m, _, err := run(ctx, c, d, seed, say)
		return m, err
	}
	return rival{name: name, whole: whole, fit: fit}
}

func (r rival) failing() rival {
	r.fails = true
	return r
}

// centrally fits a plan's model to the rows of all sites together.
func centrally(name string, say says) rival {
	fit := func(ctx context.Context, c condition, d *division, seed uint64) (evaluate.Model, error) {
		m, privacy := say(c, d)
		p, err := plan(d.sites, m, privacy, seed)
		if err != nil {
			return nil, err
		}
		return factors.Method{}.Central(ctx, p, dataset.Pooled(d.sites))
	}
	return rival{name: name, fit: fit}
}

// run runs a study and opens its model.
func run(ctx context.Context, c condition, d *division, seed uint64, say says) (evaluate.Model, *local.Outcome, error) {
	m, privacy := say(c, d)
	p, err := plan(d.sites, m, privacy, seed)
	if err != nil {
		return nil, nil, err
	}
	out, err := local.Run(ctx, local.Config{Plan: p, Methods: methods, Data: deal.BySite(d.sites)})
	if err != nil {
		return nil, nil, err
	}
	able, _ := methods.Lookup(p.Method.Name)
	model, err := able.(method.Evaluable).Evaluator(p, out.Result.Files, false)
	return model, out, err
}

// plan describes a study of the views of the sites' rows, whose ranges private studies take as public.
func plan(sites []dataset.Source, m, privacy keys, seed uint64) (*study.Plan, error) {
	says := keys{"name": "experiment", "seed": seed, "sites": evaluate.SiteNames(len(sites)), "method": m,
		"views": deal.Views(sites[0].Schema(), func(int) [2]float64 { return [2]float64{0, 1} })}
	if privacy != nil {
		says["privacy"] = privacy
	}
	return deal.Plan(methods, says)
}

// published is the paper's iteration: 100 rounds of 15 iterations, 30 in the first; one
// round of 800 where there is one site.
func published(c condition, _ *division) (keys, keys) {
	m := keys{"name": fedmvppca.Name, "latent": c.data.factors, "scaling": ppca.ScaleNone}
	if c.sites == 1 {
		m["rounds"], m["first_iterations"] = 1, 800
	}
	return m, nil
}

// noised is the paper's Algorithm 2, its first round in clear: ε and δ are of each release,
// and the clip is so many standard deviations of the prior.
func noised(epsilon, clip float64) says {
	return func(c condition, d *division) (keys, keys) {
		m, _ := published(c, d)
		part := keys{"constant": clip}
		m["clipping"] = keys{"first_round": "clear", "mean": part, "loadings": part, "noise_variance": part}
		m["patterns"] = d.patterns()
		return m, keys{"protection": study.ProtectionDifferential, "unit": study.UnitSubject,
			"adjacency": "replace-one", "per_release": keys{"epsilon": epsilon, "delta": 0.01}}
	}
}

// guarded is Algorithm 2 with a first round that is protected too: from a public prior for
// values in [0, 1], the default of such scales.
func guarded(c condition, d *division) (keys, keys) {
	m, privacy := noised(10, 1)(c, d)
	m["clipping"].(keys)["first_round"] = "prior"
	m["initial"], m["prior"] = "prior",
		keys{"loading_sd": 0.1, "mean": 0.5, "mean_sd": 0.25, "noise_alpha": 3, "noise_beta": 0.08}
	return m, privacy
}

// byPrivateDefault is the private method of today, with what all its releases promise together.
func byPrivateDefault(c condition, d *division) (keys, keys) {
	return keys{"name": "factors", "latent": c.data.factors, "patterns": d.patterns()}, deal.Protected(10, 1e-5)
}

// patterns are the views that each site has, which are public.
func (d *division) patterns() []keys { return deal.Patterns(d.sites[0].Schema(), d.lacking) }

// byDefault is the method of today, with one noise variance for each view as the paper has.
func byDefault(c condition, _ *division) (keys, keys) {
	return keys{"name": "factors", "latent": c.data.factors, "scaling": ppca.ScaleNone}, nil
}

// noiseByFeature is the default with a noise variance for each feature. Its fit to all rows
// is maximum-likelihood factor analysis.
func noiseByFeature(c condition, d *division) (keys, keys) {
	m, privacy := byDefault(c, d)
	m["noise"] = "feature"
	return m, privacy
}

// autoencoder is a baseline of the paper: rounds and steps are its, weights are averaged
// by numbers of rows, and λ is FedProx's.
func autoencoder(model string, lambda float64) says {
	return func(c condition, _ *division) (keys, keys) {
		return keys{"name": "vae", "model": model, "latent": c.data.factors, "proximal": lambda}, nil
	}
}

// The rivals.
var (
	linear       = federated("VAE", true, autoencoder("linear", 0))
	multiChannel = federated("mc-VAE", true, autoencoder("multi-channel", 0))

	paperFit = federated("Fed-mv-PPCA", false, published)
	paperDP  = federated("DP-Fed-mv-PPCA", false, noised(10, 1))
	// paperGuarded has noise that can outgrow every number.
	paperGuarded = federated("DP-Fed-mv-PPCA, first round protected", false, guarded).failing()
	private      = federated("private default, ε 10 in total", false, byPrivateDefault)

	today          = federated("default", false, byDefault)
	central        = centrally("default, all rows in one place", byDefault)
	factorAnalysis = centrally("factor analysis, all rows in one place", noiseByFeature)

	components = rival{name: "principal components, means in gaps", fit: fitPCA}
	mean       = rival{name: "the mean", fit: fitMean}
)

func fitPCA(ctx context.Context, c condition, d *division, _ uint64) (evaluate.Model, error) {
	return evaluate.FitPCA(ctx, c.data.factors, d.sites...)
}

func fitMean(ctx context.Context, _ condition, d *division, _ uint64) (evaluate.Model, error) {
	return evaluate.FitMean(ctx, d.sites...)
}

// The names of a fit's values, each with one number for a fold.
const (
	trainError = "train"    // mean absolute error over the observed entries of training rows
	testError  = "test"     // and of rows held out
	accuracy   = "accuracy" // of linear discriminant analysis on factors, fitted to training rows
	failed     = "failed"   // 1 for every fit that came to nothing, in place of the others
)

// add adds the fits of one repeat.
func (c condition) add(cells *experiment.Cells, r rival, repeat int, quick bool) {
	cells.Add(c.id(r.name, repeat), func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
		rows, err := c.data.open(ctx, at, repeat)
		if err != nil {
			return nil, err
		}
		v := experiment.Values{}
		n := folds
		if quick {
			n = 1
		}
		for fold := range n {
			d, err := c.divide(ctx, rows, repeat, fold)
			if err != nil {
				return nil, err
			}
			if err := c.scale(ctx, d); err != nil {
				return nil, err
			}
			m, err := r.fit(ctx, c, d, uint64(folds*repeat+fold))
			if err != nil && r.fails && ctx.Err() == nil {
				v[failed] = append(v[failed], 1)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("fold %d: %w", fold+1, err)
			}
			if err := score(ctx, m, d, v); err != nil {
				return nil, fmt.Errorf("fold %d: %w", fold+1, err)
			}
		}
		return v, nil
	})
}

// scale brings the rows of a division to [0, 1].
func (c condition) scale(ctx context.Context, d *division) (err error) {
	if c.own {
		if d.sites, err = scaled(ctx, d.sites); err != nil {
			return err
		}
		d.tests, err = scaled(ctx, d.tests)
		return err
	}
	unit, err := evaluate.FitMinMax(ctx, d.whole)
	if err != nil {
		return err
	}
	for _, sources := range [][]dataset.Source{d.sites, d.tests} {
		for i, s := range sources {
			sources[i] = unit.Apply(s)
		}
	}
	return nil
}

// score adds what a model is worth. Errors are means over the parts of the training rows
// and over those of the test rows, as the paper has them.
func score(ctx context.Context, m evaluate.Model, d *division, v experiment.Values) error {
	for name, sources := range map[string][]dataset.Source{trainError: d.sites, testError: d.tests} {
		total := 0.0
		for _, s := range sources {
			r, err := evaluate.EvaluateIn(ctx, nil, m, s)
			if err != nil {
				return err
			}
			total += r.MAE / float64(len(sources))
		}
		v[name] = append(v[name], total)
	}
	fitted, err := evaluate.Project(ctx, m, dataset.Pooled(d.sites), "group")
	if err != nil {
		return err
	}
	held, err := evaluate.Project(ctx, m, dataset.Pooled(d.tests), "group")
	if err != nil {
		return err
	}
	lda, err := evaluate.FitLDA(fitted)
	if err != nil {
		return err
	}
	v[accuracy] = append(v[accuracy], lda.Accuracy(held))
	return nil
}
