package acceptance

import (
	"context"
	"fmt"
	"path/filepath"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/tools/measure/protocol"
)

const (
	adcsfFactors = 6
	mfeatFactors = 5
)

// adcsfBars are the test errors that repeat 0 must reach: what the authors' own
// later code reaches (0.1000, 0.1007, 0.1017, 0.1023), bettered.
var adcsfBars = map[evaluate.Scenario]float64{evaluate.IID: 0.0999, evaluate.G: 0.0999, evaluate.K: 0.1009, evaluate.GK: 0.1011}

// publishedFloor is 1.5 % above 0.0997, the error of central PCA over all
// repeats, at the four decimals in which such errors are stated.
const publishedFloor = 0.1012

// onStored judges fits on stored splits in a scenario.
func onStored(ctx context.Context, src dataset.Source, splits string, repeats int, label string) func(evaluate.Scenario, protocol.Fit) ([]protocol.Result, error) {
	return func(sc evaluate.Scenario, fit protocol.Fit) ([]protocol.Result, error) {
		s, err := protocol.StoredSplits(splits, sc, len(src.Schema().Views), repeats)
		if err != nil {
			return nil, err
		}
		r, err := protocol.CrossValidate(ctx, src, s, label, fit)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", sc, err)
		}
		return r, nil
	}
}

// adcsf measures the clinical data on the stored splits.
func adcsf(ctx context.Context, data, splits string, repeats int) ([]row, error) {
	t := &table{promise: "adcsf"}
	src, err := protocol.Open(ctx, data)
	if err != nil {
		return nil, err
	}
	run := onStored(ctx, src, splits, repeats, "group")
	floor, err := run(evaluate.IID, pca(adcsfFactors))
	if err != nil {
		return nil, err
	}
	t.add("complete", "test error, central PCA, repeat 0", mean(floor[:3], testError))
	t.add("complete", over(repeats, "test error, central PCA"), mean(floor, testError))
	t.add("complete", over(repeats, "accuracy, central PCA"), mean(floor, accuracy))
	for _, sc := range scenarios {
		at := sc.String()
		var all [4][]protocol.Result
		for i, fit := range []protocol.Fit{federated(asIs(adcsfFactors, 3), 1), federated(asIs(adcsfFactors, 0), 1), central(adcsfFactors), pca(adcsfFactors)} {
			if all[i], err = run(sc, fit); err != nil {
				return nil, err
			}
		}
		def, shot, whole, rival := all[0], all[1], all[2], all[3]
		t.add(at, "test error, default, repeat 0", mean(def[:3], testError)).atMost(adcsfBars[sc]).
			note("one shot %.5f, central mv-PPCA %.5f, mean-imputation PCA %.5f", mean(shot[:3], testError), mean(whole[:3], testError), mean(rival[:3], testError))
		t.add(at, over(repeats, "test error, default"), mean(def, testError)).atMost(publishedFloor).
			note("%.4f × central PCA; one shot %.5f, central mv-PPCA %.5f", mean(def, testError)/mean(floor, testError), mean(shot, testError), mean(whole, testError))
		t.add(at, "log-likelihood per test row, one shot − central", mean(shot, testLogLik)-mean(whole, testLogLik)).
			note("default − central %.3f", mean(def, testLogLik)-mean(whole, testLogLik))
		t.add(at, over(repeats, "accuracy, default"), mean(def, accuracy)).
			note("one shot %.4f, central mv-PPCA %.4f, mean-imputation PCA %.4f", mean(shot, accuracy), mean(whole, accuracy), mean(rival, accuracy))
		for _, x := range []struct {
			name string
			a, b []protocol.Result
			of   func(protocol.Result) float64
			sign float64 // −1 where more is better
		}{
			{"accuracy, default − mean-imputation PCA", def, rival, accuracy, -1},
			{"accuracy, central mv-PPCA − mean-imputation PCA", whole, rival, accuracy, -1},
			{"accuracy, default − central mv-PPCA", def, whole, accuracy, -1},
			{"test error, default − mean-imputation PCA", def, rival, testError, 1},
			{"test error, default − central mv-PPCA", def, whole, testError, 1},
		} {
			if err := t.paired(at, x.name, each(x.a, x.of), each(x.b, x.of), x.sign); err != nil {
				return nil, err
			}
		}
	}
	return t.rows, nil
}

func over(repeats int, what string) string {
	if repeats == 1 {
		return what + ", 1 repeat"
	}
	return fmt.Sprintf("%s, %d repeats", what, repeats)
}

// paired adds the mean difference of two methods over the same folds. A win
// is a fold where the first is the better one.
func (t *table) paired(at, what string, a, b []float64, sign float64) error {
	d, err := evaluate.Paired(a, b, 0.95, 0.5) // of three folds: one tests, two train
	if err != nil {
		return err
	}
	wins, losses := d.Wins, d.Losses
	if sign < 0 {
		wins, losses = losses, wins
	}
	t.add(at, what, d.Mean).note("95 %% interval %.4f to %.4f; %d wins, %d losses, %d ties", d.Low, d.High, wins, losses, d.Ties)
	return nil
}

// mfeat measures the handwritten digits on the stored splits.
func mfeat(ctx context.Context, data string, repeats int) ([]row, error) {
	t := &table{promise: "mfeat"}
	src, err := protocol.Open(ctx, filepath.Join(data, "mfeat"))
	if err != nil {
		return nil, err
	}
	run := onStored(ctx, src, filepath.Join(data, "splits", "mfeat.csv.gz"), repeats, "digit")
	floor, err := run(evaluate.IID, pca(mfeatFactors))
	if err != nil {
		return nil, err
	}
	want := mean(floor, testError)
	t.add("complete", over(repeats, "test error, central PCA"), want).note("accuracy %.4f", mean(floor, accuracy))
	for _, sc := range []evaluate.Scenario{evaluate.IID, evaluate.G} {
		r, err := run(sc, federated(asIs(mfeatFactors, 3), 1))
		if err != nil {
			return nil, err
		}
		got := mean(r, testError)
		t.add(sc.String(), over(repeats, "test error, default"), got).atMost(1.02*want).note("%.4f × central PCA; accuracy %.4f", got/want, mean(r, accuracy))
	}
	return t.rows, nil
}
