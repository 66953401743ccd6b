package options

import "parley/study"

// Published are the settings of a private update of variant published. Defaults are those of Table 2 of the
// paper and of its code.
type Published struct {
	Noise        float64 `json:"noise"`         // standard deviation of the noise on a sum of gradients, in units of clip (5)
	Steps        int     `json:"steps"`         // of the optimiser in each update (25)
	BatchShare   float64 `json:"batch_share"`   // of a site's rows that a minibatch has on average (0.02; at least 20 rows)
	Draws        int     `json:"draws"`         // of the activation, shared by a minibatch (50)
	LearningRate float64 `json:"learning_rate"` // of Adagrad, whose accumulators each site keeps (0.5)
	// DeltaByRows makes every site spend at the δ that the paper has for its number of rows, the power of ten
	// at or below one over it (Table 1), and the promise that of the plan, which must be no less. By default
	// the plan's δ is everybody's.
	DeltaByRows bool `json:"delta_by_rows,omitempty"`
}

// The paper's settings beside [Published].
const (
	publishedClip    = 75.0 // on a row's gradient, scaled as in [glm.Gradient]
	publishedDamping = 0.1
	publishedRounds  = 1000 // more updates than any total allows
)

// paper is Table 2 of the paper and what its code decides.
func paper() Published {
	return Published{Noise: 5, Steps: 25, BatchShare: 0.02, Draws: 50, LearningRate: 0.5}
}

// Fill puts in the paper's settings where the plan has no key of that name.
func (o *Published) Fill(missing func(key string) bool) {
	paper := paper()
	for key, field := range map[string][2]*float64{
		"published.noise":         {&o.Noise, &paper.Noise},
		"published.batch_share":   {&o.BatchShare, &paper.BatchShare},
		"published.learning_rate": {&o.LearningRate, &paper.LearningRate},
	} {
		if missing(key) {
			*field[0] = *field[1]
		}
	}
	if missing("published.steps") {
		o.Steps = paper.Steps
	}
	if missing("published.draws") {
		o.Draws = paper.Draws
	}
}

// Check reports settings that cannot be worked with; positive reports numbers that are
// not positive.
func (o *Published) Check(positive func(key string, x float64), report study.Report) {
	positive("published.noise", o.Noise)
	positive("published.learning_rate", o.LearningRate)
	report.AtLeast("published.steps", o.Steps, 1)
	report.AtLeast("published.draws", o.Draws, 1)
	report.Share("published.batch_share", o.BatchShare, "of the rows cannot be in a minibatch")
}

// Global are those of the baseline, variant global.
type Global struct {
	LearningRate float64 `json:"learning_rate"` // of each site's Adagrad (0.5)
	BatchShare   float64 `json:"batch_share"`   // of a site's rows in a minibatch (0.02; at least 20 rows)
}

// Fill puts in the paper's settings where the plan has no key of that name.
func (o *Global) Fill(missing func(key string) bool) {
	if missing("global.learning_rate") {
		o.LearningRate = 0.5
	}
	if missing("global.batch_share") {
		o.BatchShare = 0.02
	}
}

// Check reports settings that cannot be worked with; positive reports numbers that are
// not positive.
func (o *Global) Check(positive func(key string, x float64), report study.Report) {
	positive("global.learning_rate", o.LearningRate)
	report.Share("global.batch_share", o.BatchShare, "of the rows cannot be in a minibatch")
}
