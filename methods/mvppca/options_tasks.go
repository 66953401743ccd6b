package mvppca

// The tasks of both variants, in the words that progress and logs show.
const (
	taskScale   = "scale"   // sums for a common scale
	taskFit     = "fit"     // the site's own fit: the one shot
	taskRefine  = "refine"  // a hierarchical round
	taskIterate = "iterate" // a published round
	taskAssess  = "assess"  // how well the model describes the site
	taskClip    = "clip"    // a round of a clipping mechanism

	taskStatistics = "statistics" // noised statistics of the site's subjects, once
	taskCheck      = "check"      // noised diagnostics of the model, once
)
