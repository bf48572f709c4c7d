package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.gohtml
var pageSource string

// HTML writes the result as one page that needs nothing else: no script, no
// network. rec may be empty; the curves are then left out.
func HTML(w io.Writer, s Summary, rec Recording) error {
	page, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	content := struct {
		view
		ID     string
		Charts []chart
	}{view: newView(s, ""), ID: s.Run.ID}
	for _, c := range []*chart{percentileChart(rec), throughputChart(rec)} {
		if c != nil {
			content.Charts = append(content.Charts, *c)
		}
	}
	if err := page.Execute(w, content); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
