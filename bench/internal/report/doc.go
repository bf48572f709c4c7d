// Package report renders results: as text for the terminal, as Markdown and as an HTML
// page. [Document] lays out one result, [SideBySide] several, [WriteRun] writes the
// files of a run. It is the only package of the bench that links a plotting library,
// and only package cli imports it.
package report
