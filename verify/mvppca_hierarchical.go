package verify

import (
	"fmt"
	"math"

	"parley/internal/vectors"
	"parley/methods/factors/between"
	"parley/methods/factors/ppca"
)

type hierarchicalJSON struct {
	Schema string `json:"schema"`
	Dims   []int  `json:"dims"`
	Q      int    `json:"q"`
	Prior  struct {
		theta
		VarW  []float64 `json:"vW"`
		VarMu []float64 `json:"vmu"`
		Alpha []float64 `json:"alpha"`
		Beta  []float64 `json:"beta"`
	} `json:"prior"`
	Sites []struct {
		Views []int       `json:"views"`
		Rows  [][]float64 `json:"rows"`
		Start struct {
			Nu     []float64   `json:"nu"`
			Xi     [][]float64 `json:"Xi"`
			Sigma2 []float64   `json:"sigma2"`
		} `json:"start"`
		Message struct {
			Y  [][]float64 `json:"Y"`
			R  [][]float64 `json:"R"`
			SS []float64   `json:"ss"`
			H  []float64   `json:"h"`
		} `json:"message"`
		State struct {
			Sigma2 []float64   `json:"sigma2"`
			Nu     []float64   `json:"nu"`
			Xi     [][]float64 `json:"Xi"`
		} `json:"state"`
	} `json:"sites"`
	Master []struct {
		View   int `json:"view"`
		REMLAt []struct {
			VarW  float64     `json:"vW"`
			VarMu float64     `json:"vmu"`
			REML  float64     `json:"reml"`
			W     [][]float64 `json:"w"`
		} `json:"reml_at"`
	} `json:"master"`
}

func (f *hierarchicalJSON) verify(list *vectors.List) error {
	l, err := ppca.NewLayout(f.Dims, ppca.NoisePerView)
	if err != nil {
		return err
	}
	p, err := f.Prior.params(l, f.Q)
	if err != nil {
		return fmt.Errorf("prior: %w", err)
	}
	prior := &ppca.Prior{Params: p, VarW: f.Prior.VarW, VarMu: f.Prior.VarMu, Alpha: f.Prior.Alpha, Beta: f.Prior.Beta}
	// The prior's noise is the mean of its law as that law is defined here.
	noise := make([]float64, l.Views())
	for k := range noise {
		if len(prior.Alpha) == len(noise) && len(prior.Beta) == len(noise) {
			noise[k] = prior.Beta[k] / prior.Alpha[k]
		}
	}
	list.Floats("prior.sigma2", prior.Noise, noise, tolIterate)
	var messages []between.Message
	for i, s := range f.Sites {
		entry := fmt.Sprintf("sites[%d]", i)
		rows, err := newSiteRows(l, s.Views, s.Rows)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		own, other, err := rows.blocks(l)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		start := between.State{Params: prior.Params.Clone(), Nu: s.Start.Nu, Xi: flat(s.Start.Xi)}
		if len(s.Start.Sigma2) != l.Views() {
			return fmt.Errorf("%s: start has %d variances for %d views", entry, len(s.Start.Sigma2), l.Views())
		}
		copy(start.Noise, s.Start.Sigma2)
		var m *between.Message
		for _, block := range []ppca.Block{other, own} {
			h, err := between.NewSite(l, []ppca.Block{block}, prior, &start)
			if err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			for range 3 {
				if err := h.Step(); err != nil {
					return fmt.Errorf("%s: %w", entry, err)
				}
			}
			if m, err = h.Message(); err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			var ss, spent, noise []float64
			for _, k := range s.Views {
				ss, noise = append(ss, m.SS[k]), append(noise, m.Noise[k])
				spent = append(spent, m.Spent[k]/m.Subjects)
			}
			list.Floats(entry+".message.Y", flat(s.Message.Y), m.Y, tolIterate)
			list.Floats(entry+".message.R", flat(s.Message.R), m.R, tolIterate)
			list.Floats(entry+".message.ss", s.Message.SS, ss, tolIterate)
			list.Floats(entry+".message.h", s.Message.H, spent, tolIterate)
			list.Floats(entry+".state.sigma2", s.State.Sigma2, noise, tolIterate)
			list.Floats(entry+".state.nu", s.State.Nu, m.Nu, tolIterate)
			list.Floats(entry+".state.Xi", flat(s.State.Xi), m.Xi, tolIterate)
		}
		messages = append(messages, *m)
	}
	list.Equal("master: views", len(f.Master), l.Views())
	for k, v := range f.Master {
		list.Equal(fmt.Sprintf("master[%d].view", k), v.View, k)
		if k >= l.Views() {
			return nil
		}
		for i, at := range v.REMLAt {
			entry := fmt.Sprintf("master[%d].reml_at[%d]", k, i)
			if !(at.VarW >= 0 && at.VarMu >= 0) || math.IsInf(at.VarW+at.VarMu, 0) {
				return fmt.Errorf("%s: variances %v and %v", entry, at.VarW, at.VarMu)
			}
			objective, w, err := between.Restricted(l, messages, k, at.VarW, at.VarMu)
			if err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			list.Float(entry+".reml", at.REML, objective, tolIterate)
			list.Floats(entry+".w", flat(at.W), w, tolIterate)
		}
	}
	return nil
}
