// Command vet is go vet, from the sources of all that a package imports. go vet compiles the standard library for each
// system that it is asked about, which takes several times as long as the checks:
//
//	go build -C tools -o /tmp/vet ./vet
//	GOOS=netbsd CGO_ENABLED=0 /tmp/vet ./...
package main

import (
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() {
	multichecker.Main(slices.DeleteFunc(slices.Clone(vet.Suite), func(a *analysis.Analyzer) bool {
		return a.Name == "scannererr" // go vet of today's Go does not have it
	})...)
}
