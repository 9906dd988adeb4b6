package daimon_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// source has the functions and types of a file of the tutorial, by name.
type source map[string]string

var (
	declared = regexp.MustCompile(`^(?:func|type) (?:\(.*?\) )?(\w+)`)
	quoted   = regexp.MustCompile(`(?m)^\t"(.*)"$`)
	session  = regexp.MustCompile(`(?m)(?:^    \$ .*\n)(?:^    .*\n)*`) // what a reader sees in a terminal
	command  = regexp.MustCompile(`(?m)^    \$ (.*)$`)
	shown    = regexp.MustCompile("(?:" + goBlock.String() + ")|" + session.String())
)

// add adds a piece as a reader does: a function takes the place of an older one, and a route goes to the others.
func (s source) add(piece string) {
	for _, d := range strings.Split(strings.Trim(piece, "\n"), "\n\n") {
		if strings.HasPrefix(d, "\tsite.Handle(") {
			s["routes"] = strings.Replace(s["routes"], "\treturn", d+"\n\treturn", 1)
		} else if name := declared.FindStringSubmatch(d); name != nil {
			s[name[1]] = d
		}
	}
}

// save writes a file of the program, with the imports that an editor finds.
func (s source) save(n newcomer, file string) {
	imports, _, _ := strings.Cut(text(n.T, "examples/tutorial/"+file), "\n)")
	head, body := "package main\n", strings.Join(slices.Sorted(maps.Values(s)), "\n\n")
	for _, i := range quoted.FindAllStringSubmatch(imports, -1) {
		if regexp.MustCompile(`\b` + path.Base(i[1]) + `\.[A-Z]`).MatchString(body) {
			head += fmt.Sprintf("import %q\n", i[1])
		}
	}
	require.NoError(n, os.WriteFile(filepath.Join(n.dir, file), []byte(head+body), 0o644))
}

// types enters the commands of a session, at the addresses that are there, and requires that it goes as written.
func (n newcomer) types(session string, there *strings.Replacer) {
	went := ""
	for _, c := range command.FindAllStringSubmatch(session, -1) {
		cmd := exec.Command("sh", "-c", there.Replace(c[1]))
		cmd.Dir = n.dir
		out, err := cmd.Output()
		require.NoError(n, err, cmd)
		went += c[0] + "\n" + regexp.MustCompile("(?m)^(.)").ReplaceAllString(string(out), "    $1")
	}
	require.Equal(n, session, went)
}

// A newcomer follows the tutorial to the letter. Only the version of Daimon is this checkout's, and the ports are free ones.
func TestTheTutorialRuns(t *testing.T) {
	tier.Need(t, tier.Full, "builds a program in a module of its own, step by step")
	tier.Tool(t, "curl")
	checkout, err := filepath.Abs(".")
	require.NoError(t, err)
	n, program, tests := newcomer{t, t.TempDir()}, source{}, source{}
	n.run("go", "mod", "init", "example.com/desk")
	n.run("go", "mod", "edit", "-replace", module+"="+checkout)
	tutorial := text(t, "docs/tutorial.md")
	require.LessOrEqual(t, len(strings.Fields(tutorial)), 1100)
	for i, step := range strings.Split(tutorial, "\n## ")[1:] {
		last, changed := "", false
		run := func() {
			_, flags, _ := strings.Cut(step, "`go run .")
			flags, _, _ = strings.Cut(flags, "`")
			addresses := 1 + strings.Count(program["main"], `"health"`)
			flags += " -addr 127.0.0.1:0" + strings.Repeat(" -health 127.0.0.1:0", addresses-1)
			program.save(n, "main.go")
			if i == 0 {
				n.run("go", "mod", "tidy")
			}
			n.running(flags, addresses, func(at []string) {
				n.types(last, strings.NewReplacer("127.0.0.1:8080", at[0], "127.0.0.1:8081", at[len(at)-1]))
			})
		}
		for _, piece := range shown.FindAllStringSubmatch(step, -1) {
			switch {
			case piece[1] == "":
				last, changed = piece[0], false
				run()
			case strings.Contains(piece[1], "*testing.T"):
				tests.add(piece[1])
				tests.save(n, "main_test.go")
				n.run("go", "test", ".")
			default:
				program.add(piece[1])
				changed = true
			}
		}
		if changed {
			run() // curl sees no difference
		}
	}
	for file, s := range map[string]source{"main.go": program, "main_test.go": tests} {
		for _, code := range s {
			require.Contains(t, text(t, "examples/tutorial/"+file), "\n"+code+"\n")
		}
	}
}
