package judged

import (
	"context"

	"parley/method"
	"parley/study"
)

// Refitter is a method whose sites may release something that is enough to make
// other models of, without asking the sites again. What is made so is
// post-processing: under differential privacy it costs nothing, and the
// guarantee of the study that released it covers it.
type Refitter interface {
	method.Method
	// ReleasedFile names the file, among those of the result of the plan's study,
	// that keeps what the sites released. It is an error if that is not enough.
	ReleasedFile(p *study.Plan) (string, error)
	// Refit makes the result that the study would have had with this value of the
	// option that a [Selector] chooses, but for what was released to describe the
	// study's own model. Released is the content of the file, which may have come
	// from anywhere: whatever is wrong with it is an error. The plan is the
	// study's, and with its own value the model is the study's model.
	Refit(p *study.Plan, released []byte, value int) (*method.Result, error)
	// SelectReleased is [Selector.Select] from that file. Of the config only Values
	// and Progress are used. The outcome depends on the plan, the file and the
	// values alone.
	SelectReleased(ctx context.Context, p *study.Plan, released []byte, c SelectConfig) (*Selection, error)
}
