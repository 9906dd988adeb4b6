package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfiguration(t *testing.T) {
	one := config{Addr: "127.0.0.1:7", Reactors: 1, Prefix: "/p", CPUs: []int{3}, Connections: 512}.text()
	for _, line := range []string{
		"worker_processes 1;\nworker_cpu_affinity 1000;\n", "pid /p/nginx.pid;", "worker_connections 512;",
		"access_log off;", "listen 127.0.0.1:7 backlog=4096;", "client_body_temp_path /p/body;",
	} {
		require.Contains(t, one, line)
	}
	two := config{Addr: "127.0.0.1:7", Reactors: 2, CPUs: []int{0, 2}}.text()
	require.Contains(t, two, "worker_processes 2;\nworker_cpu_affinity 1 100;\n")
	require.Contains(t, two, "listen 127.0.0.1:7 backlog=4096 reuseport;")
	require.NotContains(t, config{Reactors: 9}.text(), "affinity")
	require.NotContains(t, one, "ssl")
	secret := config{Addr: "127.0.0.1:7", Reactors: 2, Certificate: "/c", Key: "/k"}.text()
	for _, line := range []string{"backlog=4096 reuseport ssl;", "ssl_certificate /c;", "ssl_certificate_key /k;"} {
		require.Contains(t, secret, line)
	}
}
