package service

// PlacesFor is the default of MaxConns.
var PlacesFor = placesFor
