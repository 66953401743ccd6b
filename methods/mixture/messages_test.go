package mixture

import (
	"testing"

	"parley/internal/wire"
	"parley/methods/mixture/augment"
	"parley/methods/mixture/options"
	"parley/methods/mixture/suffiae"
	"parley/methods/published/graffl/abc"
)

// Messages and states as another program would write them: the tests of whole studies
// know no more of them than their encodings, so that a change of these is seen here.

const (
	taskLandmarks     = "landmarks"
	taskFrequencies   = "frequencies"
	taskDistances     = "distances"
	taskDiscrepancies = "discrepancies"
	taskEncoder       = "encoder"
	taskClassifier    = "classifier"
	taskWorth         = "worth"
	phaseMixture      = "mixture"

	maxLinear = 1e9 // of the numbers of a classifier
)

type (
	landmarkTask   struct{}
	landmarkAnswer struct {
		Sums wire.Vector `cbor:"sums"`
		Rows int         `cbor:"rows"`
	}
	distancesTask struct {
		Iteration int `cbor:"iteration"`
	}
	distancesAnswer struct {
		Distances wire.Vector `cbor:"distances"`
	}
	discrepanciesTask struct {
		First     int         `cbor:"first"`
		Proposals wire.Vector `cbor:"proposals"`
	}
	discrepanciesAnswer struct {
		Across wire.Vector `cbor:"across"`
		Rows   int         `cbor:"rows"`
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

// States of the variants, and of the stages around one.
type (
	publishedState struct {
		Iteration int            `cbor:"iteration"`
		Asked     bool           `cbor:"asked"`
		Rows      map[string]int `cbor:"rows"`
		Folded    map[string]int `cbor:"folded"`
		Left      []string       `cbor:"left"`
		Kept      abc.Acceptance `cbor:"kept"`
	}
	stagedState struct {
		Phase   string                   `cbor:"phase"`
		Asked   bool                     `cbor:"asked"`
		Left    []string                 `cbor:"left"`
		Encoder *suffiae.Encoder         `cbor:"encoder"`
		Linear  map[string]*linearAnswer `cbor:"linear"`
		Ranks   wire.Vector              `cbor:"ranks"`
		Worth   map[string]*worthAnswer  `cbor:"worth"`
		Variant []byte                   `cbor:"variant"`
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
