package document_test

import (
	"bytes"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"sagabench/internal/document"
)

var update = flag.Bool("update", false, "write the golden files anew")

func ptr(x float64) *float64 { return &x }

// sample has something of everything, and what has to be escaped.
func sample() document.Document {
	return document.Document{
		Title: "sample", Verdict: "NOT VALID: see <below>", Headline: "9,800 sagas/s | on redis_*",
		Lead: []string{"First & foremost.", "- not a list"},
		Parts: []document.Part{
			{Title: "Latency, ms", Table: &document.Table{
				Columns: []string{"p50", "p99.99"},
				Rows:    []document.Row{{Name: "from the due time", Cells: []string{"812", "2,121"}}, {Name: "  indented", Cells: []string{"–", "a | b"}}},
			}},
			{
				Title: "Latency over the rate",
				Chart: &document.Chart{
					Summary: "p99 leaves the \"limit\" at 9,800/s.",
					X:       document.Axis{Label: "offered, sagas/s"}, Y: document.Axis{Label: "ms", Scale: document.Log},
					Series: []document.Series{
						{Name: "p50", Points: []document.Point{{X: 1000, Y: 1}, {X: 5000, Y: 2}, {X: 9800, Y: 4}, {X: 12000, Y: 900}}},
						{Name: "p99, kept", Dots: true, Points: []document.Point{{X: 1000, Y: 3, Low: 2, High: 4}, {X: 9800, Y: 18}}},
						{Name: "p99, broken", Dots: true, Points: []document.Point{{X: 12000, Y: 2000}}},
					},
					Marks: []document.Mark{{Label: "20 ms", Y: ptr(20)}, {Label: "9,800/s", X: ptr(9800)}},
				},
			},
			{
				Title: "Two of them", Text: []string{"A paragraph."},
				Chart: &document.Chart{
					Summary: "In flight.", X: document.Axis{Label: "in flight", Scale: document.Log2}, Y: document.Axis{Label: "sagas/s"},
					Series: []document.Series{{Points: []document.Point{{X: 1, Y: 800}, {X: 512, Y: 20_000}}}},
				},
				More: []document.Chart{{
					Summary: "Nines.", X: document.Axis{Label: "percentile", Scale: document.Nines}, Y: document.Axis{Label: "ms"},
					Series: []document.Series{{Points: []document.Point{{X: 0, Y: 1}, {X: 90, Y: 2}, {X: 99.9, Y: 9}}}},
				}},
				Table: &document.Table{Columns: []string{"x"}, Rows: []document.Row{{Name: "given", Cells: []string{"1"}}}},
			},
			{
				Title: "Cost per saga",
				Facts: []document.Fact{{Name: "store CPU", Value: "9.87 µs"}, {Value: "of <one> core\x1b[31m"}},
				List:  []string{"one", "# two"},
				Chart: &document.Chart{
					Summary: "Mostly the app.", X: document.Axis{Label: "µs"}, Bars: []string{"redis", "mysql"},
					Series: []document.Series{{Name: "app", Points: []document.Point{{Y: 40}, {Y: 45.5}}}, {Name: "store", Points: []document.Point{{Y: 10}, {Y: 0}}}},
				},
			},
			{
				Title: "Rate held",
				Chart: &document.Chart{
					Summary: "Most by the first.", X: document.Axis{Label: "sagas/s"}, Bars: []string{"redis --start --set appendonly=yes --set appendfsync=everysec", "mysql", "postgres"},
					Series: []document.Series{{Points: []document.Point{{Y: 9800, Low: 9510, High: 10_100}, {Y: 4000}, {Missing: true}}}},
				},
				More: []document.Chart{{
					Summary: "Least by it.", X: document.Axis{Label: "p99, ms"}, Bars: []string{"redis --start --set appendonly=yes --set appendfsync=everysec", "mysql", "postgres"},
					Series: []document.Series{{Points: []document.Point{{Y: 4}, {Y: 9}, {Missing: true}}}},
				}},
			},
		},
		Command: "bench run redis --x '```'",
	}
}

func golden(t *testing.T, name string, write func(io.Writer, document.Document) error, d document.Document) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, write(&out, d))
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	wanted, lines := strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")
	for i := range min(len(wanted), len(lines)) {
		require.Equal(t, wanted[i], lines[i], "%s:%d; run with -update if this is meant", path, i+1)
	}
	require.Len(t, lines, len(wanted), path)
	return out.String()
}

func TestText_Golden(t *testing.T) {
	t.Parallel()
	golden(t, "sample.txt", document.Text, sample())
}

func TestMarkdown_Golden(t *testing.T) {
	t.Parallel()
	golden(t, "sample.md", document.Markdown, sample())
}

func TestHTML_Golden(t *testing.T) {
	t.Parallel()
	golden(t, "sample.html", document.HTML, sample())
}

// page parses the document's page.
func page(t *testing.T, d document.Document) (root *html.Node, text string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, document.HTML(&out, d))
	root, err := html.Parse(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	return root, out.String()
}

func elements(n *html.Node, name string) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			found = append(found, d)
		}
	}
	return found
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func TestHTML_NeedsNothingElse(t *testing.T) {
	t.Parallel()
	root, text := page(t, sample())
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			require.NotContains(t, []string{"src", "href", "srcset", "action", "data"}, a.Key, n.Data)
			require.False(t, strings.HasPrefix(a.Key, "on"), a.Key)
		}
	}
	for _, forbidden := range []string{"script", "link", "iframe", "object", "image", "use"} {
		require.Empty(t, elements(root, forbidden), forbidden)
	}
	for _, forbidden := range []string{"http:", "https:", "@import", "url("} {
		require.False(t, strings.Contains(text, forbidden), forbidden)
	}
}

func TestHTML_EachChartHasItsTitleAndItsTable(t *testing.T) {
	t.Parallel()
	root, _ := page(t, sample())
	charts := elements(root, "svg")
	require.Len(t, charts, 6)
	for _, svg := range charts {
		require.Equal(t, "img", attribute(svg, "role"))
		require.Empty(t, attribute(svg, "width"), "it is as wide as there is room")
		title := elements(svg, "title")
		require.Len(t, title, 1)
		require.NotEmpty(t, title[0].FirstChild.Data)
		require.Equal(t, title[0].FirstChild.Data, attribute(svg, "aria-label"))
	}
	require.Equal(t, `p99 leaves the "limit" at 9,800/s.`, attribute(charts[0], "aria-label"))
	details := elements(root, "details")
	require.Len(t, details, 4)
	for _, d := range details {
		require.Len(t, elements(d, "table"), 1)
	}
}

// colours that are not the page's would be unreadable on dark paper.
func TestHTML_ChartsAreDrawnInThePagesColours(t *testing.T) {
	t.Parallel()
	root, _ := page(t, sample())
	for _, svg := range elements(root, "svg") {
		for n := range svg.Descendants() {
			style := attribute(n, "style")
			require.NotContains(t, style, "#", n.Data)
			require.NotContains(t, style, "font-family", n.Data)
		}
	}
}

func one(c document.Chart) document.Document {
	return document.Document{Parts: []document.Part{{Title: "part", Chart: &c}}}
}

func line(points ...document.Point) []document.Series {
	return []document.Series{{Name: "s", Points: points}}
}

func TestCheck_RefusesWhatIsNotOnTheScale(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]document.Chart{
		"no number":            {Series: line(document.Point{Y: math.NaN()})},
		"no end":               {Series: line(document.Point{X: math.Inf(1)})},
		"nothing on log":       {Y: document.Axis{Scale: document.Log}, Series: line(document.Point{Y: 0})},
		"less on log2":         {X: document.Axis{Scale: document.Log2}, Series: line(document.Point{X: -1, Y: 1})},
		"p100":                 {X: document.Axis{Scale: document.Nines}, Series: line(document.Point{X: 100, Y: 1})},
		"an interval's end":    {Series: line(document.Point{Y: 1, Low: math.NaN(), High: 2})},
		"interval from 0, log": {Y: document.Axis{Scale: document.Log}, Series: line(document.Point{Y: 1, Low: 0, High: 2})},
		"a mark":               {Series: line(document.Point{Y: 1}), Marks: []document.Mark{{X: ptr(math.Inf(-1))}}},
		"a bar below nothing":  {Bars: []string{"a"}, Series: line(document.Point{Y: -1})},
		"a bar's interval":     {Bars: []string{"a"}, Series: line(document.Point{Y: 1, Low: 1, High: math.Inf(1)})},
		"a bar too few":        {Bars: []string{"a", "b"}, Series: line(document.Point{Y: 1})},
	} {
		for layout, write := range map[string]func(io.Writer, document.Document) error{
			"text": document.Text, "markdown": document.Markdown, "html": document.HTML,
		} {
			var out bytes.Buffer
			err := write(&out, one(c))
			require.ErrorIs(t, err, document.ErrChart, "%s, %s", name, layout)
			require.ErrorContains(t, err, "part: ", name)
			require.Zero(t, out.Len(), name)
		}
	}
}

func TestHTML_DrawsTheEdges(t *testing.T) {
	t.Parallel()
	scales := []document.Scale{document.Linear, document.Log, document.Log2, document.Nines}
	for _, x := range scales {
		for _, y := range scales[:3] {
			for _, points := range [][]document.Point{
				{{X: 5, Y: 5}},
				{{X: 5, Y: 5}, {X: 5, Y: 5}},
				{{X: 1e-9, Y: 1e-9}, {X: 99.99999, Y: 1e12}},
				{{X: 1, Y: 3, Low: 1, High: 9}, {X: 2, Y: 3}},
			} {
				root, text := page(t, one(document.Chart{X: document.Axis{Scale: x}, Y: document.Axis{Scale: y}, Series: line(points...)}))
				require.Len(t, elements(root, "svg"), 1)
				require.False(t, strings.Contains(text, "NaN") || strings.Contains(text, "Inf"), "%v %v %v", x, y, points)
			}
		}
	}
	_, text := page(t, one(document.Chart{Series: line(document.Point{}, document.Point{X: 1})}))
	require.False(t, strings.Contains(text, "NaN"), "all is zero")
	root, _ := page(t, one(document.Chart{Bars: []string{"a"}, Series: line(document.Point{})}))
	require.Len(t, elements(root, "svg"), 1, "a bar of nothing")
}

func TestHTML_OfNoPoints_DrawsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []document.Chart{{}, {Series: line()}, {Bars: []string{}, Series: line()}} {
		root, _ := page(t, one(c))
		require.Empty(t, elements(root, "svg"))
		require.Empty(t, elements(root, "table"))
		require.NoError(t, document.Text(io.Discard, one(c)))
	}
}

func TestText_ThinsOutALongTable(t *testing.T) {
	t.Parallel()
	var points []document.Point
	for i := range 300 {
		points = append(points, document.Point{X: float64(i), Y: float64(i)})
	}
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, one(document.Chart{X: document.Axis{Label: "time, s"}, Series: line(points...)})))
	require.Equal(t, 12+5, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "12 of 300 rows:")
	require.Regexp(t, `(?m)^  0 +0$`, out.String())
	require.Regexp(t, `(?m)^  299 +299$`, out.String())
	root, _ := page(t, one(document.Chart{Series: line(points...)}))
	require.Len(t, elements(root, "tr"), 301)
}

func TestText_BreaksTheHeadersOfWideTables(t *testing.T) {
	t.Parallel()
	table := &document.Table{Corner: "store", Rows: []document.Row{{Name: "redis"}, {Name: "mysql"}}}
	for range 10 {
		table.Columns = append(table.Columns, "CPU per saga, µs")
		for i := range table.Rows {
			table.Rows[i].Cells = append(table.Rows[i].Cells, []string{"1,234", "failed"}[i])
		}
	}
	var out bytes.Buffer
	require.NoError(t, document.Text(&out, document.Document{Headline: "All", Parts: []document.Part{{Title: "Costs", Text: []string{"Each."}, Table: table}}}))
	require.Equal(t, "All\n\nCosts\n  Each.\n"+
		"       "+strings.Repeat("   CPU per", 10)+"\n"+
		"  store"+strings.Repeat("  saga, µs", 10)+"\n"+
		"  redis"+strings.Repeat("     1,234", 10)+"\n"+
		"  mysql"+strings.Repeat("    failed", 10)+"\n", out.String())
}

func TestHTML_LeavesOutLabelsWithoutRoom(t *testing.T) {
	t.Parallel()
	chart := document.Chart{X: document.Axis{Label: "operations, /s"}, Bars: []string{"redis"}, Series: []document.Series{{Points: []document.Point{{Y: 99_000}}}}}
	_, text := page(t, document.Document{Parts: []document.Part{{Chart: &chart}}})
	require.Contains(t, text, ">80,000</text>")
	require.NotContains(t, text, ">100,000</text>")
}
