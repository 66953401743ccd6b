package vae

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"parley/study"
)

// The tasks.
const (
	taskScale  = "scale"  // once: how features spread
	taskTrain  = "train"  // every round: epochs from the common weights on
	taskAssess = "assess" // once: how well the model describes the site's subjects
)

// setup is what both halves know from the plan.
type setup struct {
	plan *study.Plan
	*options
	dims []int // features of each view
	net  *network
}

func newSetup(p *study.Plan) (*setup, error) {
	chosen := p.Method
	o, ok := chosen.Options.(*options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of vae", chosen.Name)
	}
	d, _ := dims(p)
	return &setup{p, o, d, newNetwork(d, o)}, nil
}

// stream returns the draws of one place and round. They are no noise for privacy.
func (s *setup) stream(name string, round int) *rand.Rand {
	h := sha256.Sum256(fmt.Appendf(nil, "vae/%s/%d", name, round))
	return rand.New(rand.NewPCG(s.plan.Seed, binary.LittleEndian.Uint64(h[:])))
}
