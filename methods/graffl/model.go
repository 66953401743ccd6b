package graffl

import (
	"context"

	"parley/method/adversary"
	"parley/method/fitted"
	"parley/methods/graffl/attacks"
	"parley/methods/graffl/report"
	"parley/methods/graffl/stages"
)

// ModelFormats implements [fitted.Opener].
func (Method) ModelFormats() []string { return []string{report.ModelFormat, stages.ClassifierFormat} }

// OpenModel implements [fitted.Opener]: of a study, or of a site's own report.
func (Method) OpenModel(data []byte) (fitted.Model, error) {
	if fitted.CheckFormat(data, stages.ClassifierFormat) == nil {
		return stages.LoadClassifier(data)
	}
	return report.LoadModel(data)
}

// Attack implements [adversary.Attackable].
func (m Method) Attack(ctx context.Context, lab adversary.Laboratory, t adversary.Target) ([]adversary.Attack, error) {
	return attacks.Mount(ctx, m, lab, t)
}
