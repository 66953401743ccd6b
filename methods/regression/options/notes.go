package options

import (
	"fmt"
	"math"

	"parley/problem"
	"parley/study"
)

// Gradients of a row of a private linear model are about √(entries/3) by the standard deviation of
// the noise, as numbers lie in −1 … 1. A clip that is longArm times as long buys privacy for what
// no row says, and one that is shortArm of it cuts off most of what rows say.
const longArm, shortArm = 3.5, 0.15

// Notes says of a checked plan what nobody should run without having read. Three features of 2000
// subjects at five sites explained .63 of the outcome's variance. A private linear fit at ε 1
// explained .61 to .63 where the noise's standard deviation was 0.3 to 3 units, .51 at 0.1, .01 to
// .16 at 5 and nothing at 100.
func (o *Options) Notes(p *study.Plan) (notes problem.List) {
	if !o.Private(p) || o.Likelihood != LikelihoodLinear || o.NoiseVariance == nil || o.Clip == nil || p.Privacy.Unit == study.UnitSite {
		return nil
	}
	sd := math.Sqrt(*o.NoiseVariance)
	times := *o.Clip * sd / math.Sqrt(float64(o.entries(p))/3)
	var what string
	switch {
	case times > longArm:
		what = fmt.Sprintf("the clip, %.2g, is about %.2g times what a row's gradient is with noise_variance: %.4g, so that privacy noise can drown effects: estimates then stay at the prior, and predictions at the mean", *o.Clip, times, *o.NoiseVariance)
	case times < shortArm:
		what = fmt.Sprintf("the clip, %.2g, leaves about %.2g of a row's gradient with noise_variance: %.4g, so that most of what rows say is cut off", *o.Clip, times, *o.NoiseVariance)
	default:
		return nil
	}
	notes.Add(problem.Problem{Where: "method.noise_variance", What: what,
		Hint: fmt.Sprintf("write %s in a unit in which what features leave of it has a standard deviation of about 1: divide it by %.3g. prior_variance is then in that unit, too", o.Outcome.Column, sd)})
	return notes
}
