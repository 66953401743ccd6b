package graffl

import (
	"fmt"

	"parley/methods/graffl/options"
	"parley/study"
)

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, v, err := setupOf(p)
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
	return text + " " + v.Tells(s)
}
