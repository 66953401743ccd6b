package options

// The tasks, in the words that progress and logs show.
const (
	TaskAdjust = "adjust" // sums for the regression on covariates
	TaskScale  = "scale"  // sums for a common scale
	TaskFit    = "fit"    // what the site says of its subjects: the one shot
	TaskRefill = "refill" // the same, single missing cells being filled by the model of all sites
	TaskRefine = "refine" // a hierarchical round
	TaskAssess = "assess" // how well the model describes the site

	TaskStatistics = "statistics" // noised statistics of the site's subjects, once
	TaskCheck      = "check"      // noised diagnostics of the model, once
)
