package acceptance

import (
	"context"
	"fmt"
	"path/filepath"

	"parley/dataset"
	"parley/engine"
	"parley/judge/evaluate"
	"parley/tools/measure/protocol"
)

// bytesSent compares what sites send for the whole fit: the default as a plan
// without options runs it, against the published variant with 100 rounds. Both
// end with the sites' assessment of the model.
func bytesSent(ctx context.Context, data string) ([]row, error) {
	t := &table{promise: "bytes"}
	d, err := openDraw(ctx, filepath.Join(data, "sd"), 1)
	if err != nil {
		return nil, err
	}
	clinical, err := protocol.Open(ctx, filepath.Join(data, "adcsf"))
	if err != nil {
		return nil, err
	}
	for _, sc := range []evaluate.Scenario{evaluate.IID, evaluate.GK} {
		sdSplits, err := d.splits(sc, 3)
		if err != nil {
			return nil, err
		}
		clinicalSplits, err := protocol.StoredSplits(filepath.Join(data, "splits", "adcsf.csv.gz"), sc, len(clinical.Schema().Views), 1)
		if err != nil {
			return nil, err
		}
		for _, c := range []struct {
			name  string
			src   dataset.Source
			split evaluate.Split
			q     int
		}{{"sd", d.data, sdSplits[0], sdFactors}, {"adcsf", clinical, clinicalSplits[0], adcsfFactors}} {
			sites, _, _ := c.split.Sources(c.src)
			_, def, err := federate(ctx, sites, options{"latent": c.q}, 1)
			if err != nil {
				return nil, fmt.Errorf("%s, %v: %w", c.name, sc, err)
			}
			_, pub, err := federate(ctx, sites, asPublished(c.q), 1)
			if err != nil {
				return nil, fmt.Errorf("%s, %v, published: %w", c.name, sc, err)
			}
			at := fmt.Sprintf("%s, %v, %d sites", c.name, sc, len(sites))
			up, down := traffic(def, len(sites))
			upPublished, downPublished := traffic(pub, len(sites))
			t.add(at, "bytes sent by a site, default", up).note("%d rounds; %.0f bytes received", len(def.Rounds), down)
			t.add(at, "bytes sent by a site, published", upPublished).note("%d rounds; %.0f bytes received", len(pub.Rounds), downPublished)
			t.add(at, "published ÷ default, sent", upPublished/up).note("received %.1f", downPublished/down)
		}
	}
	return t.rows, nil
}

// traffic is the mean over the sites of all bytes sent and received.
func traffic(o *engine.Outcome, sites int) (up, down float64) {
	for _, r := range o.Rounds {
		for _, x := range r.Sites {
			up += float64(x.Up) / float64(sites)
			down += float64(x.Down) / float64(sites)
		}
	}
	return up, down
}
