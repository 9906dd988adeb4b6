package service

import "slices"

// PlacesFor is the default of MaxConns.
var PlacesFor = placesFor

// Asked returns which acceptors the first two of n ask, in rounds in which both ask.
func Asked(n, rounds int) (first, second []int) {
	v := &Listener{}
	for range n {
		v.demons = append(v.demons, &acceptor{})
	}
	ask := func(i int) int { return slices.Index(v.demons, v.another(v.demons[i])) }
	for range rounds {
		first, second = append(first, ask(0)), append(second, ask(1))
	}
	return first, second
}

// Prepare prepares the socket file of v.
func Prepare(v *Listener, path string) error { return v.prepare(path) }
