module github.com/daimon-go/daimon/e2e/libraries

go 1.26.8

replace github.com/daimon-go/daimon => ../..

require (
	github.com/coder/websocket v1.8.15
	github.com/daimon-go/daimon v0.0.0
	github.com/netresearch/go-cron v0.9.1
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.58.0
	golang.org/x/net v0.62.0
)

require (
	github.com/klauspost/compress v1.20.1 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
