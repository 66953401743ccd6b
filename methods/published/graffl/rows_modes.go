package graffl

import (
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/methods/mixture/gmm"
)

// peaks are the modes of all component means that were accepted.
type peaks struct {
	means     []float64 // of all components of all accepted parameters
	bandwidth []float64
	modes     []mode
}

func (c *rowsCoordinator) modes(p *gmm.Posterior) (*peaks, error) {
	h, err := modeBandwidth(c.Prior, len(p.Draws))
	if err != nil {
		return nil, err
	}
	out := &peaks{bandwidth: h}
	for _, m := range p.Draws {
		out.means = append(out.means, m.Means...)
	}
	out.modes = modes(out.means, h, c.Options.Components)
	return out, nil
}

// modesSection shows what is real of the cloud.
func (c *rowsCoordinator) modesSection(p *peaks, made []float64) figure.Section {
	var widths []string
	for i, h := range p.bandwidth {
		widths = append(widths, fmt.Sprintf("%.3g in %s", h, c.Names[i]))
	}
	table := &figure.Table{ID: "modes", Title: "The highest modes",
		Caption: "Modes of the kernel density of the means of all components of all accepted parameters, the highest first. The bandwidth, " + strings.Join(widths, ", ") + ", follows from the prior and the number of accepted parameters."}
	number, height := figure.Column{Name: "mode"}, figure.Column{Name: "density, as a share of the highest", Format: figure.Percent}
	places := make([]figure.Column, len(c.Names))
	for i, name := range c.Names {
		places[i].Name = name
	}
	for k, m := range p.modes {
		number.Text, height.Numbers = append(number.Text, fmt.Sprint(k+1)), append(height.Numbers, m.Density)
		for i, x := range m.At {
			places[i].Numbers = append(places[i].Numbers, x)
		}
	}
	table.Columns = append(append([]figure.Column{number}, places...), height)
	section := figure.Section{ID: "modes", Title: "The modes of the cloud",
		Lead:  "This is what the published figures show, and it is real: where accepted component means lie densest, the rows do too. How surely a mode is known does not follow from it, and how high it is says little about how many rows it has.",
		Items: []figure.Item{{Table: table}}}
	if len(c.Names) == 2 {
		section.Items = append(section.Items, figure.Item{Figure: c.modesFigure(p, made)})
	}
	return section
}

// modesFigure draws the density of the cloud over two features, and that of the
// components that made accepted rows.
func (c *rowsCoordinator) modesFigure(p *peaks, made []float64) *figure.Figure {
	const places = 49
	labels := c.Labels()
	f := figure.Contours{X: figure.Axis{Label: labels[0]}, Y: figure.Axis{Label: labels[1]}}
	for i := range places {
		at := float64(i) / (places - 1)
		f.XAt, f.YAt = append(f.XAt, c.Lo[0]+at*(c.Hi[0]-c.Lo[0])), append(f.YAt, c.Lo[1]+at*(c.Hi[1]-c.Lo[1]))
	}
	for _, cloud := range []struct {
		title  string
		points []float64
	}{{"all components", p.means}, {"components that made the accepted rows", made}} {
		k := NewKernelDensity(cloud.points, p.bandwidth)
		scale := 1 / (2 * math.Pi * p.bandwidth[0] * p.bandwidth[1] * float64(k.Len()))
		panel := figure.Panel{Title: cloud.title, Legend: "density"}
		for _, y := range f.YAt {
			row := make(figure.Numbers, 0, places)
			for _, x := range f.XAt {
				row = append(row, scale*k.At([]float64{x / p.bandwidth[0], y / p.bandwidth[1]}, nil))
			}
			panel.Values = append(panel.Values, row)
		}
		f.Panels = append(f.Panels, panel)
	}
	for k, m := range p.modes {
		f.Groups = append(f.Groups, figure.Group{Name: fmt.Sprintf("mode %d", k+1), Mean: m.At})
	}
	return &figure.Figure{ID: "modes-map", Title: "Where accepted component means lie", Chart: f,
		Caption: "Components that made an accepted row lie near the rows, as near-copies of them; the others are still where the prior put them.",
		Alt:     "Densities of accepted component means over the two features, with the modes marked."}
}
