package daimon_test

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/httpd/accesslog"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

// flagRow is a row of a table of flags: the name, the kind of its value, the default.
var flagRow = regexp.MustCompile("(?m)^\\| `-([a-z-]+)` \\| ([^|]+) \\| ([^|]+) \\|")

// docs/flags.md names all flags that a program of package program may have, with their values and defaults.
func TestDocumentedFlagsAreTheFlagsOfPrograms(t *testing.T) {
	command, arguments := flag.CommandLine, os.Args
	defer func() { flag.CommandLine, os.Args = command, arguments }()
	flag.CommandLine, os.Args = flag.NewFlagSet("program", flag.PanicOnError), os.Args[:1]
	server := program.Server{Addr: "of the program", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{Messages: -1}, &secure.TLS{}, &accesslog.Log{}, &inspect.Inspector{},
	}}
	server.Parse()
	defined := map[string][2]string{}
	flag.CommandLine.VisitAll(func(f *flag.Flag) {
		value, _ := flag.UnquoteUsage(f)
		defined[f.Name] = [2]string{cmp.Or(value, "–"), cmp.Or(f.DefValue, "–")}
	})
	documented := map[string][2]string{}
	for _, row := range flagRow.FindAllStringSubmatch(text(t, "docs/flags.md"), -1) {
		documented[row[1]] = [2]string{strings.TrimSpace(row[2]), strings.TrimSpace(row[3])}
	}
	require.Equal(t, defined, documented)
}

// metricRow is a row of a table of metrics: the name and the meaning.
var metricRow = regexp.MustCompile("(?m)^\\| `daimon_([a-z0-9_]+)` \\| (.+) \\|$")

// docs/logging.md says of each metric what /metrics says of it.
func TestDocumentedMetricsAreThoseOfPackageInspect(t *testing.T) {
	_, list, _ := strings.Cut(text(t, "inspect/help.go"), "const meanings = `\n")
	list, _, _ = strings.Cut(list, "`")
	documented := map[string]string{}
	for _, row := range metricRow.FindAllStringSubmatch(text(t, "docs/logging.md"), -1) {
		documented[row[1]] = row[2]
	}
	served := map[string]string{}
	for line := range strings.Lines(list) {
		if name, meaning, ok := strings.Cut(line, " "); ok {
			served[name] = strings.TrimSpace(meaning)
		}
	}
	require.Equal(t, served, documented)
}

// docs/ending.md lists what a shutdown may log.
func TestDocumentedLinesOfAShutdownAreThoseOfTheSource(t *testing.T) {
	_, end, _ := strings.Cut(text(t, "program/program.go"), "// logEnd ")
	var logged, documented []string
	for _, found := range regexp.MustCompile(`(?:Info|Warn)\("([^"]+)"|how :?= (?:fmt.Sprintf\()?"([^"%]+)`).FindAllStringSubmatch(text(t, "monitor/signals.go")+end, -1) {
		logged = append(logged, found[1]+found[2])
	}
	_, table, _ := strings.Cut(text(t, "docs/ending.md"), "\n| line |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`…]+)").FindAllStringSubmatch(table, -1) {
		documented = append(documented, row[1])
	}
	require.Subset(t, documented, logged)
}

// Each piece of Go in the pages is in the file that the text before it links to, at whatever depth of blocks.
func TestThePagesShowCodeThatCompiles(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range pages { // examples/fetch tests the ways, TestTheTutorialRuns the tutorial; the simulation sketches a test
		if page == "docs/four-ways.md" || page == "docs/tutorial.md" || page == "docs/simulation.md" {
			continue
		}
		content := text(t, page)
		for _, at := range goBlock.FindAllStringSubmatchIndex(content, -1) {
			if strings.HasPrefix(content[at[2]:at[3]], "package main\n") {
				continue // a whole program: see TestTheFirstServersRun
			}
			links := goLink.FindAllStringSubmatch(content[:at[0]], -1)
			require.NotEmpty(t, links, page)
			file := filepath.Join("docs", links[len(links)-1][1])
			require.Contains(t, flush(text(t, file)), flush(content[at[2]:at[3]]), "%s: it is not in %s", page, file)
		}
	}
}

// flush returns code without the indentation of its lines.
func flush(code string) string { return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "") }

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	section = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
)

// sections returns the anchors that GitHub gives the headings of a document.
func sections(t *testing.T, document string) (all []string) {
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text(t, document), ""), -1) {
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

// documents returns the paths of all Markdown files.
func documents(t *testing.T) (all []string) {
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

func TestDocumentsLinkToSectionsThatAreThere(t *testing.T) {
	for _, document := range documents(t) {
		for _, l := range section.FindAllStringSubmatch(text(t, document), -1) {
			to := document
			if l[1] != "" {
				to = filepath.Join(filepath.Dir(document), l[1])
			}
			require.Contains(t, sections(t, to), l[2], "%s links to %s", document, l[0])
		}
	}
}

// phrases are constructions that read as translated, each with what makes a place of it an honest one.
var phrases = []struct{ found, honest *regexp.Regexp }{
	{regexp.MustCompile(`\b[Tt]hose (that|of|which|who|on which|in which)\b`), nil},                                                              // repeat the noun
	{regexp.MustCompile(`(\w+\s+)?\b(is|are|was|were)\s+no\s+\w+`), regexp.MustCompile(`(?i)^there\s|\s(longer|more|less|fewer|better|worse)$`)}, // is not a
	{regexp.MustCompile(`\b[Bb]ehind\s+(a|an|the|this|that|it|its|each|all|what|which|those|them|one)\b(\s+\w+){0,2}`),
		regexp.MustCompile(`(prox|load|pooler|firewall|gateway|NAT|tick)\w*`)}, // after
	{regexp.MustCompile(`\b[Aa]lso\s+(if|when|after|while|before)\b`), nil}, // even if
}

func TestDocumentsReadAsWrittenInEnglish(t *testing.T) {
	for _, document := range documents(t) {
		for _, found := range phrasesIn(text(t, document)) {
			t.Errorf("%s: %q", document, found)
		}
	}
}

func phrasesIn(content string) (all []string) {
	for _, p := range phrases {
		for _, found := range p.found.FindAllString(content, -1) {
			if p.honest == nil || !p.honest.MatchString(found) {
				all = append(all, found)
			}
		}
	}
	return all
}

// comment is a line of a comment in Go.
var comment = regexp.MustCompile(`(?m)^\s*//.*$|\s// .*$`)

func TestCommentsReadAsWrittenInEnglish(t *testing.T) {
	for _, file := range goFiles(t) {
		content := strings.Join(comment.FindAllString(text(t, file), -1), "\n")
		for _, found := range phrasesIn(content) {
			t.Errorf("%s: %q", file, found)
		}
	}
}
