package document

import (
	"errors"
	"fmt"
	"math"
)

// ErrChart reports a chart that cannot be drawn.
var ErrChart = errors.New("cannot be drawn")

// Check returns an error that wraps ErrChart and names the part if a value is not
// finite or not on its scale, a bar is negative, or a layer lacks a point for a bar. It
// ignores charts without points.
func (d Document) Check() error {
	for _, p := range d.Parts {
		for _, c := range p.charts() {
			if err := c.check(); err != nil {
				return fmt.Errorf("%s: %w", p.Title, err)
			}
		}
	}
	return nil
}

func (c Chart) check() error {
	for _, s := range c.Series {
		if c.Bars != nil && len(s.Points) != len(c.Bars) {
			return fmt.Errorf("%w: %q has %d points for %d bars", ErrChart, s.Name, len(s.Points), len(c.Bars))
		}
		for _, p := range s.Points {
			if err := c.checkPoint(p); err != nil {
				return fmt.Errorf("%q: %w", s.Name, err)
			}
		}
	}
	for _, m := range c.Marks {
		if err := errors.Join(c.X.checkMark(m.X), c.Y.checkMark(m.Y)); err != nil {
			return fmt.Errorf("%q: %w", m.Label, err)
		}
	}
	return nil
}

func (c Chart) checkPoint(p Point) error {
	if c.Bars != nil {
		for _, x := range []float64{p.Y, p.Low, p.High} {
			if !(x >= 0) || math.IsInf(x, 0) {
				return fmt.Errorf("%w: a bar of %v", ErrChart, x)
			}
		}
		return nil
	}
	values := []float64{p.Y}
	if p.interval() {
		values = append(values, p.Low, p.High)
	}
	for _, y := range values {
		if err := c.Y.Scale.check(y); err != nil {
			return err
		}
	}
	return c.X.Scale.check(p.X)
}

func (a Axis) checkMark(x *float64) error {
	if x == nil {
		return nil
	}
	return a.Scale.check(*x)
}

func (s Scale) check(x float64) error {
	on := !math.IsNaN(x) && !math.IsInf(x, 0)
	switch s {
	case Log, Log2:
		on = on && x > 0
	case Nines:
		on = on && x >= 0 && x < 100
	}
	if !on {
		return fmt.Errorf("%w: %v is not on the scale", ErrChart, x)
	}
	return nil
}

func (p Point) interval() bool { return p.Low != 0 || p.High != 0 }
