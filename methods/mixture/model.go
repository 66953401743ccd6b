package mixture

import (
	"parley/method"
	"parley/methods/mixture/report"
	"parley/methods/mixture/scarce"
)

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return []string{report.ModelFormat, scarce.ClassifierFormat} }

// OpenModel implements [method.Opener]: of a study, or of a site's own report.
func (Method) OpenModel(data []byte) (method.Model, error) {
	if method.CheckFormat(data, scarce.ClassifierFormat) == nil {
		return scarce.LoadClassifier(data)
	}
	return report.LoadModel(data)
}
