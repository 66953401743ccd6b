package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"parley/figure"
	"parley/method/fitted"
	"parley/problem"
	"parley/report"
)

// accountPage is a folder for an answer with its pictures, if one is asked for.
type accountPage struct{ dir string }

func (p *accountPage) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.dir, "out", "", "also write a page with pictures into this folder, which is empty or does not exist yet")
}

// check refuses a folder with something in it, before there is work to be lost.
func (p *accountPage) check() error {
	if p.dir == "" {
		return nil
	}
	if err := checkFolder(p.dir); err != nil {
		return err
	}
	if entries, err := os.ReadDir(p.dir); err == nil && len(entries) > 0 {
		return problem.Problem{File: p.dir, What: "this folder is not empty, and was left as it is", Hint: "choose another with --out"}
	}
	return nil
}

// write writes the page.
func (p *accountPage) write(title string, a *fitted.Account) error {
	if p.dir == "" {
		return nil
	}
	page := &report.Report{Title: title, Meta: a.Facts}
	for _, n := range a.Notes {
		page.Doubts = append(page.Doubts, problem.List{n}.Error())
	}
	answer := figure.Section{ID: "answer", Title: "Pictures"}
	for i := range a.Figures {
		answer.Items = append(answer.Items, figure.Item{Figure: &a.Figures[i]})
	}
	numbers := figure.Section{ID: "numbers", Title: "Numbers"}
	for i, t := range a.Tables {
		t.ID = fmt.Sprintf("table-%d", i+1)
		numbers.Items = append(numbers.Items, figure.Item{Table: &t})
	}
	page.Sections = []figure.Section{answer, numbers}
	return page.WriteFiles(p.dir)
}
