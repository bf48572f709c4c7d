package usl

import "math"

// law is X(n) written so that it is linear in its parameters:
// n/X(n) = alone + queue·(n-1) + pair·n(n-1), where λ = 1/alone, σ = queue/alone and
// κ = pair/alone.
type law struct{ alone, queue, pair float64 }

func (l law) at(n float64) float64 {
	return n / (l.alone + l.queue*(n-1) + l.pair*n*(n-1))
}

func (l law) lambda() float64 { return 1 / l.alone }
func (l law) sigma() float64  { return l.queue / l.alone }
func (l law) kappa() float64  { return l.pair / l.alone }

// peak is the n at which the law has its highest throughput, infinite if it rises
// forever.
func (l law) peak() float64 { return math.Sqrt(max(0, l.alone-l.queue) / l.pair) }

// fit is the law with the least squares of the relative residuals, measured/fitted -
// 1, among those whose parameters are not negative. The minimum of a convex function
// over such a corner lies inside it, or on a face where the parameters that would be
// negative are 0: the best of the allowed solutions on all faces is it.
func fit(points []Point) (best law, ok bool) {
	least := math.Inf(1)
	for _, face := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		p, solved := solve(points, face)
		l := law{p[0], p[1], p[2]}
		if !solved || l.alone <= 0 || l.queue < 0 || l.pair < 0 {
			continue
		}
		squares := 0.0
		for _, q := range points {
			e := q.X/l.at(q.N) - 1
			squares += e * e
		}
		if squares < least {
			best, least, ok = l, squares, true
		}
		if len(face) == len(p) {
			break // nothing on a face is better than the minimum inside
		}
	}
	return best, ok
}

// solve finds the parameters named in face, the others 0, by the normal equations:
// each point asks for X/n·(alone + queue·(n-1) + pair·n(n-1)) = 1. With n squared in
// them their condition is poor, so each column is scaled to a length of 1 first.
func solve(points []Point, face []int) (p [3]float64, ok bool) {
	var m [3][4]float64 // the equations, and in the last column what they equal
	const equal = 3
	for _, q := range points {
		share := q.X / q.N
		terms := [3]float64{share, share * (q.N - 1), share * q.N * (q.N - 1)}
		for _, r := range face {
			for _, c := range face {
				m[r][c] += terms[r] * terms[c]
			}
			m[r][equal] += terms[r]
		}
	}
	var length [3]float64
	for _, r := range face {
		length[r] = math.Sqrt(m[r][r])
	}
	for _, r := range face {
		for _, c := range face {
			m[r][c] /= length[r] * length[c]
		}
		m[r][equal] /= length[r]
	}
	for _, c := range face {
		if !(m[c][c] > 1e-12) {
			return p, false
		}
		for _, r := range face {
			if r == c {
				continue
			}
			factor := m[r][c] / m[c][c]
			for j := range m[r] {
				m[r][j] -= factor * m[c][j]
			}
		}
	}
	for _, c := range face {
		p[c] = m[c][equal] / m[c][c] / length[c]
	}
	return p, true
}
