// Package gateway passes requests of HTTP on to other servers: a [Gateway] is the handler of an httpd.Server.
package gateway
