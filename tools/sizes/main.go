// Command sizes is a ratchet. It counts how large each package is, and compares that with the file sizes.txt at the root of
// the repository:
//
//	go run -C tools ./sizes          fails if a number has grown beyond the one in sizes.txt
//	go run -C tools ./sizes -write   writes today's numbers to sizes.txt
//
// So growth is a change of sizes.txt, which the message of its commit explains.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A size has the numbers of a package, in the order of columns.
type size [7]int

// The columns of sizes.txt.
const (
	product  = iota // lines of Go outside tests
	tests           // lines of tests, of their data, and of packages that only tests import
	names           // exported constants, variables, types, functions and methods
	examples        // functions Example
	file            // lines of the longest file of the product
	function        // lines of its longest function
	longTest        // lines of the longest function of the tests
)

var columns = [...]string{"product", "tests", "names", "examples", "longest file", "longest function", "longest test"}

// suites are the packages that only tests import: their lines are lines of tests.
var suites = []string{"e2e", "e2e/browser", "e2e/libraries", "internal/testing/exectest", "internal/testing/filtertest", "internal/testing/mutant", "internal/testing/pgserver",
	"internal/testing/price", "internal/testing/servertest", "internal/testing/streamtest", "internal/testing/tier", "internal/testing/tier/run", "internal/testing/tlstest", "internal/testing/traffic",
	"internal/testing/party", "stage/internal/enginetest", "stage/internal/storm", "stage/storetest"}

// beside are the folders whose programs are neither product nor tests.
var beside = []string{"bench", "examples", "tools"}

const root = ".."

// most is how many lines of tests there may be for one of product.
const most = 1.5

func main() {
	write := flag.Bool("write", false, "write today's numbers")
	flag.Parse()
	today, err := count()
	if err != nil {
		fail(err)
	}
	path := filepath.Join(root, "sizes.txt")
	if *write {
		if err := os.WriteFile(path, []byte(text(today)), 0o644); err != nil {
			fail(err)
		}
		return
	}
	agreed, err := read(path)
	if err != nil {
		fail(err)
	}
	if grown := compare(today, agreed); len(grown) > 0 {
		fmt.Println(strings.Join(grown, "\n"))
		fmt.Println("If that is meant: go run -C tools ./sizes -write, and the reason in the message of the commit.")
		os.Exit(1)
	}
	fmt.Println(total(today))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// count returns the sizes by folder.
func count() (map[string]*size, error) {
	all := map[string]*size{}
	return all, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folder, _, isData := strings.Cut(filepath.ToSlash(rel), "/testdata/")
		if !isData {
			folder = filepath.ToSlash(filepath.Dir(rel))
		}
		if !isData && !strings.HasSuffix(path, ".go") {
			return nil
		}
		if all[folder] == nil {
			all[folder] = &size{}
		}
		return all[folder].add(path, isData, slices.Contains(suites, folder))
	})
}

// add counts a file.
func (s *size) add(path string, data, suite bool) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.Count(text, []byte("\n"))
	if data {
		s[tests] += lines
		return nil
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(path, "_test.go")
	longest := &s[function]
	if test || suite {
		s[tests] += lines
		longest = &s[longTest]
	} else {
		s[product] += lines
		s[file] = max(s[file], lines)
	}
	for _, d := range f.Decls {
		if fd, ok := d.(*ast.FuncDecl); ok {
			*longest = max(*longest, set.Position(fd.End()).Line-set.Position(fd.Pos()).Line+1)
			if test && strings.HasPrefix(fd.Name.Name, "Example") {
				s[examples]++
			}
		}
		if !test && f.Name.Name != "main" {
			s[names] += exported(d)
		}
	}
	return nil
}

// exported returns how many names a declaration exports.
func exported(d ast.Decl) (n int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		receiver := ""
		if d.Recv != nil {
			receiver = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")
		}
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver)) {
			n++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					n++
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						n++
					}
				}
			}
		}
	}
	return n
}

const head = "# How large each package may be: see tools/sizes. A commit that raises a number says why.\n"

// text returns the file sizes.txt.
func text(all map[string]*size) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "# %s\n", total(all))
	fmt.Fprintf(&b, "%-34s %s\n", "# package", strings.Join(columns[:], ", "))
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%-34s", folder)
		for _, n := range all[folder] {
			fmt.Fprintf(&b, " %6d", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// total returns a sentence about the whole.
func total(all map[string]*size) string {
	s := sum(all)
	return fmt.Sprintf("product %d lines, tests %d: %.2f for one; %d exported names", s[product], s[tests],
		float64(s[tests])/float64(s[product]), s[names])
}

// sum adds up what is in each column of all.
func sum(all map[string]*size) (sum size) {
	for folder, s := range all {
		for i, n := range s {
			if first, _, _ := strings.Cut(folder, "/"); i != tests && slices.Contains(beside, first) ||
				i == names && strings.Contains("/"+folder+"/", "/internal/") {
				continue
			}
			sum[i] += n
		}
	}
	return sum
}

// read returns the sizes of a file.
func read(path string) (map[string]*size, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]*size{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var folder string
		s := &size{}
		into := []any{&folder}
		for i := range s {
			into = append(into, &s[i])
		}
		if _, err := fmt.Sscan(line, into...); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		all[folder] = s
	}
	return all, nil
}

// compare returns a line for each number that has grown.
func compare(today, agreed map[string]*size) (grown []string) {
	for folder, s := range today {
		for i, n := range s {
			if was := cmp.Or(agreed[folder], &size{})[i]; n > was {
				grown = append(grown, fmt.Sprintf("%s: %s %d, agreed on %d", folder, columns[i], n, was))
			}
		}
	}
	if all := sum(today); float64(all[tests]) > most*float64(all[product]) {
		grown = append(grown, fmt.Sprintf("%d lines of tests for %d of product: at most %v for one", all[tests], all[product], most))
	}
	for _, folder := range suites {
		if today[folder] == nil {
			grown = append(grown, folder+": a suite that is gone")
		}
	}
	slices.Sort(grown)
	return grown
}
