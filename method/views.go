package method

import (
	"parley/dataset"
	"parley/study"
)

// ModelView is a view of a model file: its columns in their order.
type ModelView struct {
	Name    string        `json:"name"`
	Columns []ModelColumn `json:"columns"`
}

// ModelColumn is a feature; a category if it has levels.
type ModelColumn struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit,omitempty"`
	Levels []string `json:"levels,omitempty"`
	Other  string   `json:"other,omitempty"` // level that one not listed counts as
	// Missing are cells that stand for a missing value.
	Missing []string `json:"missing,omitempty"`
}

// ModelViews lists a plan's views.
func ModelViews(p *study.Plan) (views []ModelView) {
	for k, v := range p.Views {
		view := ModelView{Name: v.Name}
		for j, f := range v.Features {
			c := ModelColumn{Name: f.Name, Unit: f.Unit, Missing: p.Codes(k, j)}
			if f.Kind == study.Category {
				c.Levels, c.Other = f.Levels, f.Other
			}
			view.Columns = append(view.Columns, c)
		}
		views = append(views, view)
	}
	return views
}

// ViewsSchema is that of data with these views.
func ViewsSchema(views []ModelView) (s dataset.Schema) {
	for _, v := range views {
		view := dataset.View{Name: v.Name}
		for _, c := range v.Columns {
			kind := dataset.Number
			if len(c.Levels) > 0 {
				kind = dataset.Category
			}
			view.Columns = append(view.Columns, dataset.Column{Name: c.Name, Kind: kind, Levels: c.Levels, Other: c.Other, Missing: c.Missing})
		}
		s.Views = append(s.Views, view)
	}
	return s
}
