package dppvi

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/regression/glm"
)

// scaled returns the encoding with the constants that the sites' moments tell; s is nil if the plan has them.
func (c *common) scaled(s *scale) (*glm.Encoding, error) {
	if standard := c.own.Scaling == glm.ScaleStandard; standard != (s != nil) {
		return nil, fmt.Errorf("a scale is missing, or the plan has one itself")
	}
	if s == nil {
		return &c.Encoding, nil
	}
	e, err := c.Encoding.Scaled(c.Numbers(), s.Centre, s.Scale)
	if err != nil {
		return nil, err
	}
	return e, e.Check()
}

// names are those of the plan's numbers.
func (c *common) names() (names []string) {
	for _, j := range c.Numbers() {
		names = append(names, c.Encoding.Columns[j].Name)
	}
	return names
}

// moments are those of the numbers of a site's rows.
func (c *common) moments(ctx context.Context, data dataset.Source) (*glm.Moments, error) {
	b, err := c.Encoding.Bind(data.Schema(), nil)
	if err != nil {
		return nil, err
	}
	numbers := c.Numbers()
	m := glm.NewMoments(len(numbers))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			m.Add(i, b.Cell(row, j))
		}
	}
	return &m, nil
}

// pool makes one scale of the moments of several sites.
func (c *common) pool(sites []*glm.Moments) (*scale, error) {
	names := c.names()
	all := glm.NewMoments(len(names))
	for _, m := range sites {
		all.Merge(m)
	}
	centre, sd, err := all.Scale(names)
	return &scale{centre, sd}, err
}
