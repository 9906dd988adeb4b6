#!/bin/sh
# haproxy.sh -addr HOST:PORT -reactors N -origin HOST:PORT runs HAProxy as it is measured, with N threads. A connection to the
# origin serves any client when it is free.
dir=$(mktemp -d) || exit
cat >"$dir/cfg" <<END
global
	nbthread $4
	maxconn $((($(ulimit -Hn) - 200) / 2))
defaults
	mode http
	timeout connect 5s
	timeout client 10m
	timeout server 10m
	option forwardfor
	option http-no-delay
	option abortonclose
	http-reuse always
frontend web
	bind $2
	http-request set-header X-Forwarded-Host %[req.hdr(Host)]
	http-request set-header X-Forwarded-Proto http
	default_backend site
backend site
	server one $6
END
exec 3<"$dir/cfg"
rm -r "$dir"
exec /usr/sbin/haproxy -q -db -f /dev/fd/3
