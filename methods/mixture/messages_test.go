package mixture

import (
	"testing"

	"parley/internal/wire"
	"parley/methods/mixture/augment"
	"parley/methods/mixture/options"
	"parley/methods/mixture/suffiae"
)

// Messages and states as another program would write them: the tests of whole studies
// know no more of them than their encodings, so that a change of these is seen here.

const (
	taskLandmarks   = "landmarks"
	taskFrequencies = "frequencies"
	taskEncoder     = "encoder"
	taskClassifier  = "classifier"
	taskWorth       = "worth"
	phaseMixture    = "mixture"

	maxLinear = 1e9 // of the numbers of a classifier
)

type (
	landmarkTask   struct{}
	landmarkAnswer struct {
		Sums wire.Vector `cbor:"sums"`
		Rows int         `cbor:"rows"`
	}
	encoderTask   struct{}
	encoderAnswer struct {
		Encoder *suffiae.Encoder `cbor:"encoder"`
	}
	encodedTask struct {
		Encoder *suffiae.Encoder `cbor:"encoder"`
		Body    []byte           `cbor:"body"`
	}
	linearTask   struct{}
	linearAnswer struct {
		Weights   wire.Vector `cbor:"weights"`
		Intercept float64     `cbor:"intercept"`
		Scarce    int         `cbor:"scarce"`
		Other     int         `cbor:"other"`
	}
	worthShare struct {
		Sample     *options.Sample `cbor:"sample"`
		Classifier *linearAnswer   `cbor:"classifier"`
		From       string          `cbor:"from"`
	}
	worthAnswer struct {
		Scarce     int              `cbor:"scarce"`
		Other      int              `cbor:"other"`
		Held       int              `cbor:"held"`
		HeldScarce int              `cbor:"held_scarce"`
		Arms       []augment.Result `cbor:"arms"`
		Verdict    augment.Verdict  `cbor:"verdict"`
		Gain       float64          `cbor:"gain"`
		GainError  float64          `cbor:"gain_error"`
	}
)

// stagedState is that of the stages around a sampler.
type (
	stagedState struct {
		Phase   string                   `cbor:"phase"`
		Asked   bool                     `cbor:"asked"`
		Left    []string                 `cbor:"left"`
		Encoder *suffiae.Encoder         `cbor:"encoder"`
		Linear  map[string]*linearAnswer `cbor:"linear"`
		Worth   map[string]*worthAnswer  `cbor:"worth"`
		Sampler []byte                   `cbor:"variant"`
	}
)

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpack reads all of what pack wrote.
func unpack[A any](t testing.TB, data []byte) *A {
	t.Helper()
	a := new(A)
	if err := wire.Unmarshal(data, a); err != nil {
		t.Fatal(err)
	}
	return a
}
