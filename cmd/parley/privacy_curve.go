package main

import (
	"github.com/spf13/cobra"

	"parley/judge/curve"
	"parley/study"
)

func curveCommand() *cobra.Command {
	c := curve.Config{Methods: methods}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "curve PLAN",
		Short: "Show how useful a private study can be at each ε, from the plan alone",
		Long: "Imagines the subjects of every site from the plan alone, with the method's own model: no data are\n" +
			"read and no budget is spent. Runs the whole study on them with other totals and other numbers of\n" +
			"subjects, scores every fit on subjects who took no part, and draws its error, or how well it\n" +
			"predicts outcomes, against ε: beside the same model without privacy and beside predicting the\n" +
			"mean or the base rate.\n\n" +
			"What is drawn follows from the plan's seed; the noise is that of a real study, and cannot be\n" +
			"drawn again. It may be stopped at any moment: the same command continues it, and more budgets,\n" +
			"numbers of subjects and repeats may be asked for later.",
		Example:     "  parley privacy curve plan.yaml\n  parley privacy curve plan.yaml --epsilon 0.3,1,3 --subjects 150,600 --repeats 10",
		Annotations: map[string]string{resumes: "yes"},
		Args:        args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			var err error
			if c.Plan, err = study.Load(a[0], methods); err != nil {
				return err
			}
			if c.Dir, err = directoryOf(c.Dir, c.Plan, "curve"); err != nil {
				return err
			}
			show := &evaluationProgress{progress: newProgress(cmd.ErrOrStderr())}
			defer show.close()
			c.Progress = show.experiments
			curve, err := curve.Run(cmd.Context(), c)
			if err != nil {
				return err
			}
			show.close()
			return present(cmd.OutOrStdout(), asJSON, c.Dir, "curve", curve)
		},
	}
	f := cmd.Flags()
	f.Float64SliceVar(&c.Epsilons, "epsilon", []float64{0.5, 1, 3, 10}, "totals to try, beside that of the plan")
	f.IntSliceVar(&c.Subjects, "subjects", []int{100, 500, 2500}, "numbers of subjects at each site to try")
	f.IntVar(&c.Repeats, "repeats", 5, "populations to imagine for each")
	f.Float64Var(&c.Noise, "noise-share", 0.3, "share of variance that nothing explains: of every feature, or of the outcome to be predicted")
	f.StringVar(&c.Dir, "out", "", "directory for what is computed (default results/NAME-DIGEST-curve)")
	f.BoolVar(&asJSON, "json", false, "print where the results are, and all numbers, as JSON")
	return cmd
}
