package graffl

import (
	"context"

	"parley/method/adversary"
	"parley/method/fitted"
)

// ModelFormats implements [fitted.Opener].
func (Method) ModelFormats() []string { return []string{ModelFormat, ClassifierFormat} }

// OpenModel implements [fitted.Opener]: of a study, or of a site's own report.
func (Method) OpenModel(data []byte) (fitted.Model, error) {
	if fitted.CheckFormat(data, ClassifierFormat) == nil {
		return LoadClassifier(data)
	}
	return LoadModel(data)
}

// Attack implements [adversary.Attackable].
func (m Method) Attack(ctx context.Context, lab adversary.Laboratory, t adversary.Target) ([]adversary.Attack, error) {
	return Mount(ctx, m, lab, t)
}
