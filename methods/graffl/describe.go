package graffl

import (
	"fmt"

	"parley/methods/graffl/options"
	"parley/methods/graffl/setup"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, err := setup.New(p)
	if err != nil {
		return ""
	}
	o := s.Options
	groups, rows, of := fmt.Sprintf("%d groups (normal components)", o.Components), "the rows", fmt.Sprintf("%d features", len(s.Names))
	if o.Components == 1 {
		groups = "one group (normal component)"
	}
	if o.Scarce != nil {
		rows = fmt.Sprintf("the rows of class %s of column %s", o.Scarce.Class, o.Scarce.Outcome.Column)
	}
	if o.Encoder != nil {
		encoder := "an encoder"
		if o.Encoder.Kind == options.EncoderSuffiAE {
			encoder += ", trained on rows without noise,"
		}
		of = fmt.Sprintf("%d numbers that %s makes of each row", len(s.Names), encoder)
	}
	text := fmt.Sprintf("It describes %s as a mixture of %s in %s: how large, where and how wide each is.", rows, groups, of)
	switch o.Variant {
	case options.VariantPublished:
		return text + " Again and again sites tell the exact distance of each of their rows to simulated ones, from which the rows can be found."
	case options.VariantSet:
		return text + " Again and again sites tell how far their rows as a whole are from simulated ones."
	}
	text += fmt.Sprintf(" Each site tells once how close its rows lie to %d public points", s.Marks.Len())
	if s.Sum != nil {
		text += ", with noise"
	}
	if o.Scarce != nil {
		text += ", and tries what rows drawn from the mixture are worth to a classifier of its own"
	}
	return text + "."
}
