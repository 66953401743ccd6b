// Command parley fits Bayesian models to the data of several sites, while no
// subject's row leaves a site. See docs/reference/cli.md for its commands and
// exit codes.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/internal/version"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/mixture"
	"parley/methods/published/dppvi"
	"parley/methods/published/fedmvppca"
	"parley/methods/published/graffl"
	"parley/methods/published/vae"
	"parley/methods/regression"
	"parley/problem"
)

// methods is every method this program knows: the one line to add to.
var methods = method.Registry{factors.Method{}, regression.Method{}, mixture.Method{}, fedmvppca.Method{},
	dppvi.Method{}, graffl.Method{}, vae.Method{}}

// Exit codes, documented in docs/reference/cli.md.
const (
	exitOK          = 0
	exitFailed      = 1   // the work was done and the answer is no, or it could not be done
	exitUsage       = 2   // the command line itself is wrong
	exitInterrupted = 130 // stopped by a person; run the same command to continue
)

// resumes marks, in a command's annotations, that what was interrupted continues.
const resumes = "resumes"

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	root := commandTree()
	root.SetFlagErrorFunc(flagError)
	began := false
	prepare(root, &began)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		resume := ""
		if cmd.Annotations[resumes] != "" {
			resume = "; run the same command again to continue"
		}
		fmt.Fprintln(os.Stderr, "parley: interrupted"+resume)
		return exitInterrupted
	}
	if !began {
		err = misused(cmd, err)
	}
	fmt.Fprintf(os.Stderr, "parley: error: %s\n", indent(err.Error()))
	if usage := (*usageError)(nil); !began || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// commandTree is the program's commands.
func commandTree() *cobra.Command {
	cobra.EnableCommandSorting = false // but as they come in a study
	root := &cobra.Command{
		Use:   "parley",
		Short: "Federated Bayesian learning for multi-centre studies",
		Long: "Parley fits one Bayesian model to the data of several sites, and rows stay at their sites.\n" +
			"One YAML file, the plan, describes a study.",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableSuggestions: true, // unknownCommand makes them
	}
	root.PersistentFlags().BoolP("quiet", "q", false, "show no progress, only notes and warnings")
	root.AddGroup(groups...)
	root.AddCommand(commands()...)
	return root
}

// The groups of commands in the help, in the order of a study.
var groups = []*cobra.Group{
	{ID: "study", Title: "From data to a study:"},
	{ID: "model", Title: "What to do with a fitted model:"},
	{ID: "privacy", Title: "What is protected, and whether it holds:"},
	{ID: "network", Title: "Over a network:"},
}

// commands are all of them, with their groups and examples.
func commands() []*cobra.Command {
	all := []*cobra.Command{}
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			complete(c, c.Name())
			all = append(all, c)
		}
	}
	add("study", initCommand(), dataCommand(), planCommand(), runCommand(), selectCommand(), evaluateCommand())
	add("model", modelCommand(), compareCommand())
	add("privacy", privacyCommand(), attackCommand(), verifyCommand())
	add("network", demoCommand(), coordinatorCommand(), siteCommand())
	add("", manualCommand(), former("experiment", "in a clone of the repository: go run -C papers . list, run NAME, "+
		"or report"))
	return all
}

// former is a command that the program had, and says what to use instead.
func former(name, instead string) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{fmt.Errorf("%s is no part of this program any more\n  hint: %s",
				cmd.CommandPath(), instead)}
		}}
}

func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "manual DIR",
		Short: "Write the manual pages",
		Long:  "Write a manual page for each command, parley-COMMAND.1, into a folder that exists.",
		RunE:  func(cmd *cobra.Command, a []string) error { return writeManual(cmd.Root(), a[0]) },
	}
}

// complete gives a command and those below it their examples, and the check that they
// have the arguments of their usage line.
func complete(c *cobra.Command, path string) {
	if c.RunE != nil && c.Args == nil {
		c.Args = asUsed
	}
	for _, line := range examples[path] {
		c.Example += "  parley " + line + "\n"
	}
	c.Example = strings.TrimSuffix(c.Example, "\n")
	for _, sub := range c.Commands() {
		complete(sub, path+" "+sub.Name())
	}
}

// examples are what to type, by command; every command that does something has one.
var examples = map[string][]string{
	"attack":                 {`attack graffl-abc`},
	"compare":                {`compare results/first results/second`},
	"coordinator abort":      {`coordinator abort study-centre alzheimer`},
	"coordinator doctor":     {`coordinator doctor study-centre`},
	"coordinator drop":       {`coordinator drop study-centre alzheimer south`},
	"coordinator init":       {`coordinator init study-centre --host parley.example.org --websocket :443`},
	"coordinator invite":     {`coordinator invite study-centre north`},
	"coordinator log show":   {`coordinator log show study-centre`},
	"coordinator log verify": {`coordinator log verify study-centre`},
	"coordinator rebuild": {`coordinator rebuild study-centre --key backup/coordinator.key --host ` +
		`parley.example.org plan.yaml`},
	"coordinator results": {`coordinator results study-centre alzheimer`},
	"coordinator revoke":  {`coordinator revoke study-centre north`},
	"coordinator serve":   {`coordinator serve study-centre`},
	"coordinator sites":   {`coordinator sites study-centre`},
	"coordinator status":  {`coordinator status study-centre`},
	"coordinator submit":  {`coordinator submit study-centre plan.yaml`},
	"coordinator watch":   {`coordinator watch study-centre`},
	"data map":            {`data map hospital --plan plan.yaml --out hospital/mapping.yaml`},
	"data describe":       {`data describe examples/alzheimer/data --features`},
	"data split":          {`data split examples/alzheimer/data --scenario k --sites 2 --out sites`},
	"demo":                {`demo examples/alzheimer/plan.yaml`},
	"evaluate":            {`evaluate examples/alzheimer/plan.yaml --repeats 1`},
	"manual":              {`manual man`},
	"init":                {`init hospitals --outcome group --missing -9,unknown --out study.yaml`},
	"model associate":     {`model associate results/fit sites/north --with group`},
	"model contrast":      {`model contrast results/income education=Masters education=Bachelors`},
	"model impute":        {`model impute results/fit sites/north --view immune --out imputed.csv`},
	"model predict":       {`model predict results/fit sites/north --out predicted.csv`},
	"model refit":         {`model refit results/private --latent 3 --out results/three`},
	"model rotate":        {`model rotate results/fit --to varimax --out results/varimax`},
	"model summary":       {`model summary results/fit --top 3`},
	"model transform":     {`model transform results/fit sites/north --out scores.csv`},
	"plan check":          {`plan check plan.yaml --data`},
	"plan show":           {`plan show plan.yaml`},
	"privacy account": {`privacy account plan.yaml`,
		`privacy account --adjacency add-remove --gaussian noise=1.2,count=100,rate=0.02`},
	"privacy calibrate": {`privacy calibrate --epsilon 1 --delta 1e-5 --adjacency add-remove --gaussian ` +
		`count=100,rate=0.02`},
	"privacy curve":      {`privacy curve plan.yaml --epsilon 0.3,1,3 --subjects 150,600`},
	"run":                {`run examples/alzheimer/plan.yaml --out results/mine`},
	"select":             {`select examples/alzheimer/plan.yaml --latent 1..8`},
	"site approve":       {`site approve north alzheimer`},
	"site backup":        {`site backup north --out backup/north`},
	"site data":          {`site data north /srv/registry`},
	"site doctor":        {`site doctor north`},
	"site go-on":         {`site go-on north alzheimer`},
	"site join":          {`site join north.invitation --data /srv/registry --policy policy.yaml`},
	"site ledger export": {`site ledger export results/private --site north --format csv > north.csv`},
	"site ledger show":   {`site ledger show results/private --site north --policy policy.yaml`},
	"site ledger verify": {`site ledger verify results/private --site north`},
	"site log show":      {`site log show north`},
	"site log verify":    {`site log verify north`},
	"site pending":       {`site pending north`},
	"site policy check": {`site policy check policy.yaml plan.yaml --site north --subjects 400 --store ` +
		`north/site.db`},
	"site policy init": {`site policy init > policy.yaml`},
	"site refuse":      {`site refuse north alzheimer --reason "our ethics board meets in May"`},
	"site results":     {`site results north`},
	"site serve":       {`site serve north`},
	"site show":        {`site show north alzheimer`},
	"site status":      {`site status north`},
	"site watch":       {`site watch north`},
	"verify":           {`verify methods/factors/testdata/fedmvppca`},
}

// prepare makes the commands set began when they have been understood and
// begin to work, and commands that only group others refuse what they are not.
func prepare(c *cobra.Command, began *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, a []string) error {
			*began = true
			return run(c, a)
		}
	} else if c.HasParent() {
		c.DisableFlagsInUseLine = true
		c.RunE = func(c *cobra.Command, a []string) error {
			if len(a) > 0 {
				return unknownCommand(c, a[0])
			}
			return c.Help()
		}
	}
	for _, sub := range c.Commands() {
		prepare(sub, began)
	}
}

// usageError marks a command line that could not be understood.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// asUsed checks that a command has the arguments that its usage line names: those in
// brackets may be missing, and X... are several.
func asUsed(c *cobra.Command, a []string) error {
	first, _, _ := strings.Cut(c.Use, " | ")
	var names []string
	required, several := 0, false
	words := strings.Fields(first)[1:]
	for i, word := range words {
		if strings.HasPrefix(word, "--") || i > 0 && strings.HasPrefix(words[i-1], "--") {
			continue // an option and its value
		}
		several = several || strings.Contains(word, "...")
		if names = append(names, word); !strings.HasPrefix(word, "[") {
			required++
		}
	}
	if len(a) >= required && (several || len(a) <= len(names)) {
		return nil
	}
	what := fmt.Sprintf("%s needs %s, and got %s", c.CommandPath(), strings.Join(names, " "),
		cmp.Or(strings.Join(a, " "), "nothing"))
	if len(names) == 0 {
		what = fmt.Sprintf("%s takes options only, and got %s", c.CommandPath(), strings.Join(a, " "))
	} else if len(a) > required {
		what = fmt.Sprintf("%s takes %s, and got more: %s", c.CommandPath(), strings.Join(names, " "),
			strings.Join(a, " "))
	}
	return &usageError{fmt.Errorf("%s\n  hint: usage: %s", what, c.UseLine())}
}

// flagError says what is wrong with an option.
func flagError(c *cobra.Command, err error) error {
	what, hint := err.Error(), "see '"+c.CommandPath()+" --help'"
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		what = fmt.Sprintf("%s has no option --%s", c.CommandPath(), unknown.GetSpecifiedName())
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		if near := problem.Nearest("--"+unknown.GetSpecifiedName(), known); near != "" {
			hint = "did you mean " + near + "?\n  hint: " + hint
		}
	case errors.As(err, &unknown):
		what = fmt.Sprintf("%s has no option -%s", c.CommandPath(), unknown.GetSpecifiedName())
	case errors.As(err, &empty):
		what = fmt.Sprintf("--%s needs a value: %s", empty.GetFlag().Name, empty.GetFlag().Usage)
	case errors.As(err, &value):
		f := value.GetFlag()
		if kind := valueKinds[f.Value.Type()]; kind != "" {
			what = fmt.Sprintf("--%s: %q is not %s", f.Name, value.GetValue(), kind)
		} else {
			what = fmt.Sprintf("--%s: %q: %v", f.Name, value.GetValue(), errors.Unwrap(value))
		}
	}
	return &usageError{fmt.Errorf("%s\n  hint: %s", what, hint)}
}

// valueKinds are the types of options, in words.
var valueKinds = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number",
	"intSlice": "a list of whole numbers such as 1,2,3",
	"float64":  "a number", "float64Slice": "a list of numbers such as 0.5,1,2", "bool": "true or false",
	"duration": "a duration such as 90s or 24h",
}

var (
	quotedWord = regexp.MustCompile(`"([^"]+)"`)
	groupWords = regexp.MustCompile(`\[([^\]]+)\]`)
)

// misused says in this program's words what cobra refuses before a command begins.
func misused(c *cobra.Command, err error) error {
	text := err.Error()
	options := func(found [][]string) string {
		var all []string
		for _, m := range found {
			for _, name := range strings.Fields(m[1]) {
				all = append(all, "--"+name)
			}
		}
		slices.Sort(all)
		return strings.Join(all, " and ")
	}
	switch groups := groupWords.FindAllStringSubmatch(text, -1); {
	case strings.HasPrefix(text, "unknown command ") && !strings.Contains(text, "hint:"):
		return unknownCommand(c, quotedWord.FindStringSubmatch(text)[1])
	case strings.HasPrefix(text, "required flag(s) "):
		text = c.CommandPath() + " needs " + options(quotedWord.FindAllStringSubmatch(text, -1))
	case strings.HasPrefix(text, "if any flags in the group ") && len(groups) == 2:
		text = "either of these, but not both: " + options(groups[1:])
	case strings.HasPrefix(text, "at least one of the flags in the group ") && len(groups) == 1:
		text = c.CommandPath() + " needs one of " + strings.ReplaceAll(options(groups), " and ", ", ")
	default:
		return err
	}
	return &usageError{fmt.Errorf("%s\n  hint: usage: %s\n  hint: see '%s --help'", text, c.UseLine(), c.CommandPath())}
}

// unknownCommand says that a command has no such part.
func unknownCommand(c *cobra.Command, name string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	var meant []string // commands of this name below others, or else one of nearly this name
	for _, group := range c.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() == name {
				meant = append(meant, sub.CommandPath())
			}
		}
	}
	if near := problem.Nearest(name, known); near != "" && meant == nil {
		meant = append(meant, c.CommandPath()+" "+near)
	}
	hint := ""
	if meant != nil {
		hint = fmt.Sprintf("\n  hint: did you mean %s?", strings.Join(meant, " or "))
	}
	return &usageError{fmt.Errorf("unknown command %q for %q%s\n  hint: see '%s --help'", name, c.CommandPath(), hint,
		c.CommandPath())}
}

// indent sets every problem of a list on a line of its own below the first.
func indent(s string) string {
	if strings.Contains(s, "\n") && !strings.Contains(s, "\n  hint:") {
		return "\n" + s
	}
	return s
}
