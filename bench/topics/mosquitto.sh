#!/bin/sh
# mosquitto.sh -addr HOST:PORT -reactors N runs mosquitto as it is measured. It has one thread.
dir=$(mktemp -d) || exit
cat >"$dir/conf" <<END
listener ${2##*:} ${2%:*}
allow_anonymous true
set_tcp_nodelay true
log_dest none
user $(id -un)
END
exec 3<"$dir/conf"
rm -r "$dir"
exec /usr/sbin/mosquitto -c /dev/fd/3
