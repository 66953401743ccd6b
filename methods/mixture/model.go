package mixture

import (
	"context"

	"parley/method"
	"parley/methods/mixture/report"
	"parley/methods/mixture/stages"
	"parley/methods/published/graffl/attacks"
)

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{report.ModelFormat, stages.ClassifierFormat} }

// OpenModel implements [method.Opener]: of a study, or of a site's own report.
func (Method) OpenModel(data []byte) (method.Model, error) {
	if method.CheckFormat(data, stages.ClassifierFormat) == nil {
		return stages.LoadClassifier(data)
	}
	return report.LoadModel(data)
}

// Attack implements [method.Attackable].
func (m Method) Attack(ctx context.Context, lab method.Laboratory, t method.Target) ([]method.Attack, error) {
	return attacks.Mount(ctx, m, lab, t)
}
