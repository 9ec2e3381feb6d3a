package com.example

import kotlinx.serialization.Serializable

/** An account; `usr_nm` is unique. */
@Serializable
data class Account(
    val id: Long,
    val usr_nm: String,
    val tags: List<String> = emptyList(),
) {
    init {
        require(usr_nm.matches(Regex("""[a-z][\w.-]{2,}"""))) { "bad usr_nm: '$usr_nm'" }
    }

    val label get() = "@$usr_nm (${tags.joinToString { "#$it" }})"
}

fun List<Account>.byName(name: String) = firstOrNull { it.usr_nm.equals(name, ignoreCase = true) }
