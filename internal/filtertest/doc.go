// Package filtertest has two filters for the tests of services and connects: one that leaves the bytes as they are, and
// one that changes all of them. Only tests import it.
package filtertest
