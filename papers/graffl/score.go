package graffl

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"parley/judge/evaluate"
	"parley/papers/graffl/scarce"
)

// The measures of an arm at a site.
const (
	auc     = "AUC"
	f1      = "F1 at ½"
	cutOff  = "cut-off"
	f1There = "F1 at the cut-off"
	spread  = "SD of AUC" // over augmented sets
)

// scores are the measures of one classifier on held rows. F1 is of the class.
func scores(probability []float64, labels []bool) (map[string]float64, error) {
	if len(probability) != len(labels) || len(labels) == 0 {
		return nil, fmt.Errorf("scoring a classifier: %d probabilities and %d labels: want as many, and at least one",
			len(probability), len(labels))
	}
	cut, there := youden(probability, labels)
	return map[string]float64{auc: evaluate.AUC(probability, labels), f1: scarce.F1(probability, labels), cutOff: cut,
		f1There: there}, nil
}

// youden returns the probability from which on rows are called of the class if the
// sensitivity less the share of false alarms is to be largest (Youden 1950), the highest
// such, and F1 there. Both classes must occur.
func youden(probability []float64, labels []bool) (cut, f1 float64) {
	order := make([]int, len(labels))
	positive := 0.0
	for i, yes := range labels {
		order[i] = i
		if yes {
			positive++
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(probability[j], probability[i]) })
	negative, hits, alarms, best := float64(len(labels))-positive, 0.0, 0.0, -1.0
	for at, i := range order {
		if labels[i] {
			hits++
		} else {
			alarms++
		}
		if at+1 < len(order) && probability[order[at+1]] == probability[i] {
			continue // equal probabilities stand on one side
		}
		if j := hits/positive - alarms/negative; j > best {
			best, cut, f1 = j, probability[i], 2*hits/(positive+hits+alarms)
		}
	}
	return cut, f1
}

// put adds an arm's scores at a site: of several augmented sets their means, and the
// standard deviation of the AUC.
func (t *trial) put(arm string, sets ...map[string]float64) {
	for _, name := range []string{auc, f1, cutOff, f1There} {
		var all []float64
		for _, s := range sets {
			all = append(all, s[name])
		}
		t.values[arm+", "+name] = append(t.values[arm+", "+name], stat.Mean(all, nil))
		if name == auc && len(sets) > 1 {
			t.values[arm+", "+spread] = append(t.values[arm+", "+spread], stat.StdDev(all, nil))
		}
	}
}

// judge scores an arm with one classifier.
func (t *trial) judge(arm string, probability []float64) error {
	s, err := scores(probability, t.held.Labels)
	if err == nil {
		t.put(arm, s)
	}
	return err
}
