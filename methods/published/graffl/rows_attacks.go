package graffl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

// trilaterated is trilateration, passive: the coordinator of an honest study reads the
// answers, and knows the points.
func (a attacker) trilaterated(ctx context.Context) error {
	a.Tell("rows: trilateration")
	d := a.Dim
	rounds := 10 * (d + 1)
	s, err := studyOf(a.Victims, Rows, func(o *Options) { o.Rounds, o.Accepted = rounds, 16 })
	if err != nil {
		return err
	}
	data, err := a.Data()
	if err != nil {
		return err
	}
	seen, err := a.Lab.Study(ctx, s.Plan, data)
	if err != nil {
		return err
	}
	answers, err := s.own.distances(seen)
	if err != nil {
		return err
	}
	var exact, coarse []float64
	points, squared, rough := make([]float64, rounds*d), make([]float64, rounds), make([]float64, rounds)
	for j, site := range s.Plan.Sites {
		proposer, n := newProposer(s.Setup, site), len(a.Sites[j])/d
		for k := range n {
			for i, at := range answers[site] {
				proposer.Row(i*n+k, points[i*d:][:d])
				squared[i] = at[k]
				rough[i] = twoDigits(at[k])
			}
			x, err := Trilaterate(points[:(d+1)*d], squared[:d+1], d)
			if err != nil {
				return fmt.Errorf("row %d of site %s: %w", k+1, site, err)
			}
			exact = append(exact, x...)
			if x, err = trilaterateRounded(points, rough, d); err != nil {
				return fmt.Errorf("row %d of site %s: %w", k+1, site, err)
			}
			coarse = append(coarse, x...)
		}
	}
	a.Found(method.Attack{Variant: Rows, Name: "A: trilateration", Answers: d + 1, Of: "distances of each row",
		Needs: "nothing but to read the answers of an honest study, whose simulated rows follow from the plan's seed"}, a.Score(a.All(), exact, 0.001), 1, true)
	a.Found(method.Attack{Variant: Rows, Name: "A: trilateration of rounded answers", Answers: rounds, Of: "distances of each row",
		Needs: "the same, where sites round their answers to two digits, as they do not"}, a.Score(a.All(), coarse, 0.25), 0.9, false)
	return nil
}

// twoDigits keeps the first two digits of a positive number.
func twoDigits(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/unit) * unit
}

// trilaterateRounded recovers a row from answers whose errors grow with them, by
// least squares of relative errors. Points are by rows.
func trilaterateRounded(points, squared []float64, dim int) ([]float64, error) {
	x, err := Trilaterate(points, squared, dim)
	if err != nil {
		return nil, err
	}
	mixture.LeastSquares(x, len(squared), func(r, jac, x []float64) {
		for i, s := range squared {
			g, weight := points[i*dim:][:dim], 1/max(s, 1e-9)
			r[i] = weight * (gmm.SquaredDistance(x, g) - s)
			if jac == nil {
				continue
			}
			for c := range dim {
				jac[i*dim+c] = 2 * weight * (x[c] - g[c])
			}
		}
	})
	return x, nil
}

// permuted is the attack on answers in an order that is drawn anew each round: one
// point for all rows, moved by so little that the order of the distances stays. A
// task cannot name points, so it is mounted on [squaredDistances] itself.
func (a attacker) permuted(context.Context) error {
	a.Tell("rows: one point for all rows")
	d := a.Dim
	_, lo, hi := mixture.Box(a.Plan)
	r := rand.New(rand.NewPCG(a.Seed, 7))
	const step = 1e-7
	var truth, guesses []float64
	for _, rows := range a.Sites {
		n := len(rows) / d
		points, answers := make([]float64, n*d), make([]float64, n)
		ask := func(point []float64) []float64 {
			for k := range n {
				copy(points[k*d:], point)
			}
			squaredDistances(answers, rows, points, d)
			r.Shuffle(n, func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
			return slices.Sorted(slices.Values(answers))
		}
		origin := slices.Clone(lo) // a corner: rows are at unlike distances from it
		first := ask(origin)
		found := make([]float64, n*d)
		for c := range d {
			h := step * (hi[c] - lo[c])
			moved := slices.Clone(origin)
			moved[c] += h
			h = moved[c] - origin[c]
			for k, s := range ask(moved) { // s − first = h² + 2 h (origin − x)
				found[k*d+c] = origin[c] + (h*h-(s-first[k]))/(2*h)
			}
		}
		order := make([]int, n)
		for k := range order {
			order[k] = k
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Compare(gmm.SquaredDistance(origin, rows[i*d:][:d]), gmm.SquaredDistance(origin, rows[j*d:][:d]))
		})
		for _, k := range order {
			truth = append(truth, rows[k*d:][:d]...)
		}
		guesses = append(guesses, found...)
	}
	a.Found(method.Attack{Variant: Rows, Name: "B: one point for all rows, moved a little", Answers: d + 1, Of: "distances of each row", Active: true,
		Needs: "to choose the points, where sites permute their answers each round; mounted on the distances themselves: a task of this program cannot name points"},
		a.Score(truth, guesses, 0.05), 0.95, false)
	return nil
}
