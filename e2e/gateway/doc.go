// Package gateway has no code but tests. They put examples/gateway where others have nginx or HAProxy: between clients and
// servers that behave well, badly, or not at all. What passes through it is compared with what passes through the other two.
//
//	DAIMON_TESTS=full go test -count=1 ./e2e/gateway
//
// Without DAIMON_TESTS=full all of it is left out.
package gateway
